"""The Open Responses standard as types and functions: bytes and values, no I/O.

Read in the order in which a stream is read: `sse` cuts bytes into frames, `codec`
makes events of them, `builder` folds events into a response. `writer` goes the other
way. `chat` and `seed_v1` translate to neighbouring forms.
"""

from gambit_actors.openresponses.builder import ResponseBuilder, build_response
from gambit_actors.openresponses.codec import (
    decode_event,
    decode_item,
    decode_items,
    decode_request,
    decode_response,
)
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    StandardEvent,
    UnknownEvent,
)
from gambit_actors.openresponses.followup import follow_up
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
    assistant_message,
    system_message,
    user_message,
)
from gambit_actors.openresponses.provider_frames import ProviderFrames
from gambit_actors.openresponses.replay import events_from_response
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, Usage, response_for
from gambit_actors.openresponses.sse import (
    DONE_FRAME,
    SSEDecoder,
    SSEFrame,
    encode_event,
)
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.openresponses.writing import encode

__all__ = [
    "DONE_FRAME",
    "CreateResponse",
    "Event",
    "FunctionCall",
    "FunctionCallOutput",
    "Item",
    "MalformedEvent",
    "Message",
    "ProviderFrames",
    "Reasoning",
    "Response",
    "ResponseBuilder",
    "ResponseWriter",
    "SSEDecoder",
    "SSEFrame",
    "StandardEvent",
    "UnknownEvent",
    "UnknownItem",
    "Usage",
    "assistant_message",
    "build_response",
    "decode_event",
    "decode_item",
    "decode_items",
    "decode_request",
    "decode_response",
    "encode",
    "encode_event",
    "events_from_response",
    "follow_up",
    "response_for",
    "system_message",
    "user_message",
]
