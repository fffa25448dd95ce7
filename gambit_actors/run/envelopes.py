"""What a call gives back to the model: one JSON object, whoever answered it.

::

    {runId, actionCallId, parentActionCallId?, source: {deckPath, actionName},
     payload?, status?, message?, code?, meta?}

A plain value is the payload. An object that looks like an envelope is taken for one:
its status, message, code and meta are kept, and its payload is the payload.
"""

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall

_encode = msgspec.json.Encoder().encode
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "status": (int, float),
    "message": str,
    "code": str,
    "meta": dict,
}


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The result of a call, with what is said about it.

    Attributes:
        status: a number as in HTTP; 400 and above means that it did not work.
    """

    payload: JSONValue = msgspec.UNSET
    status: float | None = None
    message: str | None = None
    code: str | None = None
    meta: dict[str, JSONValue] | None = None

    @property
    def is_error(self) -> bool:
        """Whether it says that something did not work."""
        return self.status is not None and self.status >= _FIRST_ERROR


_FIRST_ERROR = 400


class CallSource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which call an envelope answers; this is shown to the model."""

    run_id: str
    parent_call_id: str | None
    deck_path: str
    call_id: str = ""
    name: str = ""

    def of(self, call: FunctionCall) -> "CallSource":
        """The same for one of the calls of a deck."""
        return CallSource(
            run_id=self.run_id,
            parent_call_id=self.parent_call_id,
            deck_path=self.deck_path,
            call_id=call.call_id,
            name=call.name,
        )


def envelope_from(value: JSONValue) -> Envelope:
    """Make an envelope of what a deck, a module or a tool returned.

    An object without a ``payload`` that has a well-typed status, message, code or meta
    is itself the payload, and those are lifted out of it as well.
    """
    if not isinstance(value, dict):
        return Envelope(payload=value)
    lifted = {
        key: value[key]
        for key, kind in _FIELDS.items()
        if isinstance(value.get(key), kind) and not isinstance(value[key], bool)
    }
    return Envelope(payload=value.get("payload", value), **lifted)


def refusal(
    status: int, code: str, message: str, *, payload: JSONValue = msgspec.UNSET
) -> Envelope:
    """Say why a call was not carried out, in words for the model."""
    return Envelope(status=status, code=code, message=message, payload=payload)


def output_text(envelope: Envelope, source: CallSource) -> str:
    """Write an envelope as the output of a call."""
    output = _Output(
        run_id=source.run_id,
        action_call_id=source.call_id,
        parent_action_call_id=source.parent_call_id,
        source=_Source(deck_path=source.deck_path, action_name=source.name),
        status=envelope.status,
        payload=envelope.payload,
        message=envelope.message,
        code=envelope.code,
        meta=envelope.meta,
    )
    return _encode(output).decode()


class _Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    deck_path: str
    action_name: str


class _Output(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    gc=False,
):
    """An envelope with the call that it answers; what is not said is left out."""

    run_id: str
    action_call_id: str
    source: _Source
    parent_action_call_id: str | None = None
    status: float | None = None
    payload: JSONValue = msgspec.UNSET
    message: str | None = None
    code: str | None = None
    meta: dict[str, JSONValue] | None = None
