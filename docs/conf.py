"""How the documentation is built: Markdown pages, and docstrings from the code."""

import logging

from gambit_actors.version import VERSION

project = "gambit-actors"
author = "the gambit-actors contributors"
copyright = author
release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
# The builtin "type" in an annotation and the wire's many fields called "type" look
# like one ambiguous name to the Python domain.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
# No "members" here: each page names what it shows, and of that only what is public.
autodoc_default_options = {"show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"{project} {release}"


def _is_worth_a_warning(record: logging.LogRecord) -> bool:
    return getattr(record, "subtype", None) != "empty_glob"


# The index globs over folders that may still be empty. Sphinx gives this warning a
# subtype but no type, so suppress_warnings cannot name it.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(_is_worth_a_warning)
