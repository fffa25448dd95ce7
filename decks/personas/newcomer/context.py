"""What a run may tell the newcomer about itself."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody new to a subject wants to know. All of it may be left out."""

    subject: (
        Annotated[str, Meta(description="What Sam is curious about.")] | UnsetType
    ) = UNSET
    questions: Annotated[
        int, Meta(ge=1, le=10, description="How many questions Sam asks.")
    ] = 2
