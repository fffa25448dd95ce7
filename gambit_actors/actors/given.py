"""What a turn is given, a message and a context: checked before anything is written."""

import msgspec

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import problem_words
from gambit_actors.run.programs import Program
from gambit_actors.schema.schemas import LoadedSchema

MOST_MESSAGE_CHARACTERS = 8 * 2**20
"""How long a message may be. No model reads as much, and a log has to keep it."""

_encode = msgspec.json.Encoder().encode


def checked_context(
    program: Program, message: str | None, context: JSONValue, *, is_first: bool = True
) -> JSONValue:
    """The context of a turn as the deck is to get it.

    Raises:
        RequestError: it does not fit, it comes too late, or the deck waits for the
            user to speak.
    """
    deck = program.deck
    check_text(message)
    if context is not msgspec.UNSET and not is_first:
        msg = "context can only be given with the first message"
        raise RequestError(msg)
    if message is None and is_first and deck.start_mode == "user":
        msg = f"{program.name} waits for the user to speak: give it a message"
        raise RequestError(msg)
    schema = deck.context_schema
    if schema is not None and is_first:
        context = _fitting(schema, context, program.name)
    if context is not msgspec.UNSET:
        _check_json(context)
    return context


def check_text(message: object) -> None:
    """Refuse a message that is no text, or none that can be sent.

    Raises:
        RequestError: it is one of those.
    """
    if message is None:
        return
    if not isinstance(message, str):
        msg = f"the message is a {type(message).__name__}, and has to be a text"
        raise RequestError(msg)
    if len(message) > MOST_MESSAGE_CHARACTERS:
        msg = (
            f"the message has {len(message)} characters, and may have "
            f"{MOST_MESSAGE_CHARACTERS}"
        )
        raise RequestError(msg)
    try:
        message.encode()
    except UnicodeEncodeError as problem:
        msg = f"the message is not text that can be sent: {problem}"
        raise RequestError(msg) from problem


def check_run_id(run_id: object) -> None:
    """Refuse what is no id of a run, whatever store it is looked for in.

    Raises:
        RequestError: it is no text.
    """
    if not isinstance(run_id, str):
        msg = f"the id of a run is a {type(run_id).__name__}, and has to be a text"
        raise RequestError(msg)


def _check_json(context: JSONValue) -> None:
    try:
        _encode(context)
    except (TypeError, ValueError, RecursionError) as problem:
        msg = f"the context has no JSON form: {problem}"
        raise RequestError(msg) from problem


def _fitting(schema: LoadedSchema, given: JSONValue, name: str) -> JSONValue:
    """Context that fits a schema; where none is given, an empty value that does."""
    candidates: list[JSONValue] = [{}, ""] if given is msgspec.UNSET else [given]
    checks = [schema.validator.check(candidate) for candidate in candidates]
    for checked in checks:
        if checked.is_valid:
            return checked.value
    words = problem_words(checks[0].problems)
    msg = f"the context does not fit {name}: {words}"
    raise RequestError(msg)
