"""Values that a log must not keep: found where they are marked, struck out by value.

A schema marks a property with ``"x-secret": true``, or with ``writeOnly`` or the format
``password``, which say the same elsewhere. A tool or an action marks its payload in the
``secret`` of its envelope's meta: ``true`` for all of it, or a list of paths such as
``card.number``.

From then on the value itself is struck out, wherever it turns up: a model repeats what
it is told. Only texts are, and none shorter than `SHORTEST`: striking out every ``7``
would leave nothing to read.
"""

import contextlib
import re
from collections.abc import Collection, Iterator

import msgspec

from gambit_actors.deck.model import Tool
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import ActionCall, PlannedCall, RespondCall, ToolCall
from gambit_actors.run.envelopes import Envelope
from gambit_actors.run.programs import Program
from gambit_actors.schema.schemas import LoadedSchema

SHORTEST = 4
_DEEPEST = 100
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
# Keys whose values are other people's, and so have no such words in them.
_FREE = frozenset({"result", "value", "envelope", "details", "arguments", "output"})


def secrets_in(value: JSONValue, schema: LoadedSchema | None) -> set[str]:
    """The texts in a value that its schema marks as secret."""
    return set(_marked(value, schema.schema, schema.schema)) if schema else set()


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


def secrets_of_call(program: Program, plan: PlannedCall) -> set[str]:
    """The texts in what a call is given that its schema marks as secret."""
    match plan:
        case ActionCall(input=given, action=action):
            return secrets_in(given, action.context_schema)
        case ToolCall(name=name, arguments=arguments):
            offer = program.offers.get(name)
            schema = offer.input_schema if isinstance(offer, Tool) else None
            return secrets_in(arguments, schema)
        case RespondCall(envelope=envelope):
            found = secrets_in(envelope.payload, program.deck.response_schema)
            return found | secrets_of(envelope)
        case _:
            return set()


def lacks_secrets(arguments: str) -> bool:
    """Whether arguments, as a log has them, are not those that were given."""
    return STRUCK_OUT in arguments


def without_secrets(data: bytes, secrets: Collection[str]) -> bytes:
    """A JSON document in which no secret is left, in its texts or in JSON in those."""
    text = data.decode()
    found = [secret for secret in secrets if _may_be_in(text, secret)]
    if not found:
        return data
    found.sort(key=len, reverse=True)
    return _encode(_struck_out(_decode(data), found, is_free=False))


def _may_be_in(text: str, secret: str) -> bool:
    """Whether a secret may be in a JSON document, in whatever spelling."""
    if secret in text or "\\" in text:
        return True
    return _encode(secret).decode()[1:-1] in text


def _struck_out(value: JSONValue, secrets: list[str], *, is_free: bool) -> JSONValue:
    if isinstance(value, dict):
        return {
            _without(key, secrets) if is_free else key: (
                inner
                if not is_free and key in _OWN_WORDS and isinstance(inner, str)
                else _struck_out(inner, secrets, is_free=is_free or key in _FREE)
            )
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_struck_out(inner, secrets, is_free=is_free) for inner in value]
    return _without(value, secrets) if isinstance(value, str) else value


def _without(text: str, secrets: list[str]) -> str:
    """A text without secrets; one that is JSON is read, and stays JSON."""
    if text[:1] in _OPENING:
        with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
            inner = _decode(text)
            struck = _struck_out(inner, secrets, is_free=True)
            return text if struck == inner else _encode(struck).decode()
    for secret in secrets:
        text = text.replace(secret, STRUCK_OUT)
    return text


_OPENING = frozenset({"{", "[", '"'})


def _marked(
    value: JSONValue, schema: JSONValue, root: JSONValue, depth: int = 0
) -> Iterator[str]:
    """The texts in a value that a part of a schema marks; ``root`` is all of it."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        part = _part(root, reference)
        yield from _marked(value, part, root, depth + 1)
    if (
        schema.get("x-secret") is True
        or schema.get("writeOnly") is True
        or schema.get("format") == "password"
    ):
        yield from _texts(value)
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key) or ():
            yield from _marked(value, option, root, depth + 1)
    for inner, part in _inside(value, schema):
        yield from _marked(inner, part, root, depth + 1)


def _inside(
    value: JSONValue, schema: dict[str, JSONValue]
) -> Iterator[tuple[JSONValue, JSONValue]]:
    """What is in a value, each with the part of the schema that speaks of it."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        patterns = schema.get("patternProperties") or {}
        others = schema.get("additionalProperties")
        for key, inner in value.items():
            yield inner, properties.get(key, others)
            for pattern, part in patterns.items():
                if re.search(pattern, key):
                    yield inner, part
    elif isinstance(value, list):
        first = schema.get("prefixItems") or []
        for index, inner in enumerate(value):
            yield inner, first[index] if index < len(first) else schema.get("items")


def _part(root: JSONValue, reference: str) -> JSONValue:
    """The part of a schema that a reference within it leads to."""
    found = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
    return found


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
