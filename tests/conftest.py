"""What all tests share: the conformance plugin and the Hypothesis profiles."""

import os

from hypothesis import settings

pytest_plugins = ["pytester", "tests.conformance"]

# No deadline: a busy machine must not fail a test. The blob lets a failure seen
# elsewhere be replayed here. A build server tries the same examples each time,
# because it judges the change and not the luck of the draw; soak does the search.
settings.register_profile(
    "default", deadline=None, print_blob=True, derandomize="CI" in os.environ
)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    max_examples=5000,
    derandomize=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
