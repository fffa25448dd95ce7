"""Values that a log must not keep: found where they are marked, struck out by value.

A schema marks a property with ``"x-secret": true``, or with ``writeOnly`` or the format
``password``, which say the same elsewhere. A tool or an action marks its payload in the
``secret`` of its envelope's meta: ``true`` for all of it, or a list of paths such as
``card.number``.

From then on the value itself is struck out, wherever it turns up: a model repeats what
it is told. Only texts are, and none shorter than `SHORTEST`: striking out every ``7``
would leave nothing to read.
"""

from collections.abc import Collection, Iterator

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import Envelope
from gambit_actors.schema.schemas import LoadedSchema

SHORTEST = 4
STRUCK_OUT = "[redacted]"
MARK = "secret"
"""The key in an envelope's meta."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
# Keys whose values are the runtime's own words, by which a log is read again.
_OWN_WORDS = frozenset(
    {
        *("type", "role", "status", "source", "kind", "code", "model", "name"),
        *("id", "call_id", "run_id", "root_run_id", "parent_run_id", "response_id"),
        *("parent_call_id", "branched_from", "deck", "path", "asked", "key"),
    }
)


def secrets_in(value: JSONValue, schema: LoadedSchema | None) -> set[str]:
    """The texts in a value that its schema marks as secret."""
    return set(_marked(value, schema.schema)) if schema else set()


def secrets_of(envelope: Envelope) -> set[str]:
    """The texts in a payload that its envelope marks as secret."""
    mark = (envelope.meta or {}).get(MARK)
    if mark is True:
        return set(_texts(envelope.payload))
    if not isinstance(mark, list):
        return set()
    found: set[str] = set()
    for path in mark:
        if isinstance(path, str):
            found |= set(_texts(_at(envelope.payload, path.split("."))))
    return found


def without_secrets(data: bytes, secrets: Collection[str]) -> bytes:
    """A JSON document in which no secret is left, in its texts or in JSON in those."""
    struck: list[str] = []
    for secret in sorted(secrets, key=len, reverse=True):
        # As it is, and as it stands in JSON inside a text.
        struck += dict.fromkeys((secret, _encode(secret).decode()[1:-1]))
    text = data.decode()
    if not any(_encode(secret).decode()[1:-1] in text for secret in struck):
        return data
    return _encode(_struck_out(_decode(data), struck, ""))


def _struck_out(value: JSONValue, struck: list[str], key: str) -> JSONValue:
    if isinstance(value, dict):
        return {k: _struck_out(v, struck, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_struck_out(v, struck, key) for v in value]
    if isinstance(value, str) and key not in _OWN_WORDS:
        for secret in struck:
            value = value.replace(secret, STRUCK_OUT)
    return value


def _marked(value: JSONValue, schema: JSONValue) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    if (
        schema.get("x-secret") is True
        or schema.get("writeOnly") is True
        or schema.get("format") == "password"
    ):
        yield from _texts(value)
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key) or ():
            yield from _marked(value, option)
    yield from _marked_inside(value, schema)


def _marked_inside(value: JSONValue, schema: dict[str, JSONValue]) -> Iterator[str]:
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        for key, inner in value.items():
            yield from _marked(inner, properties.get(key, others))
    elif isinstance(value, list):
        for inner in value:
            yield from _marked(inner, schema.get("items"))


def _is_marked(schema: dict[str, JSONValue]) -> bool:
    is_said = schema.get("x-secret") is True or schema.get("writeOnly") is True
    return is_said or schema.get("format") == "password"


def _texts(value: JSONValue) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= SHORTEST:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _at(value: JSONValue, steps: list[str]) -> JSONValue:
    for step in steps:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value
