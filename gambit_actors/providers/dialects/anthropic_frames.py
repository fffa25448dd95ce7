"""Frames of Anthropic Messages as structs, read leniently.

A key that is not known is left aside; one that is known and has the wrong type makes
the frame malformed, so that nothing behind here has to look at types again.
"""

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import MalformedEvent

_OF_BLOCKS = ("content_block_start", "content_block_delta", "content_block_stop")


class ContentBlock(msgspec.Struct, frozen=True, kw_only=True):
    """How a block begins; of a whole answer, all that it is."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    input: JSONValue = None
    text: str | None = None
    citations: list[JSONValue] | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What is added to a block, or becomes known of the message."""

    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: JSONValue = None
    stop_reason: str | None = None
    stop_details: JSONValue = None


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame of any type."""

    type: str
    index: int | None = None
    content_block: ContentBlock | None = None
    delta: Delta | None = None
    message: JSONValue = None
    usage: JSONValue = None
    error: JSONValue = None

    @property
    def is_of_block(self) -> bool:
        """Whether it tells about a content block, and which one."""
        return self.type in _OF_BLOCKS and self.index is not None


_decode = msgspec.json.Decoder(Frame).decode


def decode_frame(data: bytes) -> Frame | None:
    """Decode a frame that is exactly in form; None for any other."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def frame_from_json(value: JSONValue, data: bytes) -> Frame | MalformedEvent:
    """Read a frame from JSON that is already parsed; ``data`` is what it was."""
    try:
        return msgspec.convert(value, Frame)
    except msgspec.ValidationError as problem:
        kind = value.get("type") if isinstance(value, dict) else None
        return MalformedEvent(
            reason="invalid_shape",
            problem=str(problem),
            raw=data.decode("utf-8", "replace"),
            type=kind if isinstance(kind, str) else None,
        )
