"""What ``gambit run`` is asked for, read from its options, or refused.

A refusal is one sentence, with an example below it where one helps. Nothing is run.
"""

import json
import math
from pathlib import Path

import msgspec

from gambit_actors.actors.trees import Limits
from gambit_actors.cli.deck_folders import PROMPT, find_decks, has_deck, is_deck_file
from gambit_actors.cli.flow import printable
from gambit_actors.cli.refusing import Refused
from gambit_actors.deck.deck_paths import builtin_deck_hint, is_builtin_deck
from gambit_actors.deck.legacy import modern_deck
from gambit_actors.deck.loader import load_deck
from gambit_actors.errors import BadScript
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripts import Script
from gambit_actors.run.budgets import Price
from gambit_actors.schema.forms import Unfolder, properties, required
from gambit_actors.schema.keywords import Schema
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.syncing import Durability
from gambit_actors.wiring.script_files import script_in

_MOST_DECKS = 5
_CUT_CHARACTERS = 60
_SAMPLES: dict[tuple[str, ...], JSONValue] = {
    ("string",): "...",
    ("integer",): 1,
    ("number",): 1,
    ("boolean",): True,
    ("array",): [],
    ("object",): {},
}


class Playing(msgspec.Struct, frozen=True, kw_only=True):
    """The options of all commands that run a deck, by their names."""

    script: str | None = None
    model: str | None = None
    model_force: str | None = None
    responses: bool | None = None
    record: str | None = None
    record_append: bool = False
    replay: str | None = None
    replay_timed: bool = False
    env_file: str | None = None
    settings: str | None = None
    prices: str | None = None
    trace: str | None = None
    stream: bool = True
    verbose: bool = False
    unconfined: tuple[str, ...] = ()
    max_passes: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: tuple[str, ...] = ()
    timeout: float | None = None
    durability: Durability = "pass"

    @property
    def limits(self) -> Limits:
        """Beyond what the run cannot go."""
        return Limits(
            max_passes=self.max_passes,
            max_tokens=self.max_tokens,
            max_cost=self.max_cost,
            timeout_seconds=self.timeout,
        )


class Asked(Playing, frozen=True, kw_only=True):
    """The options of ``gambit run``, by their names."""

    deck: str
    message: str | None = None
    context: str | None = None
    init: str | None = None
    store: str | None = None
    state: str | None = None


def refuse_what_is_no_deck(deck: str) -> None:
    """Look whether there is a deck; whether it has mistakes is found when it is loaded.

    Raises:
        Refused: there is none.
    """
    name = printable(deck)
    if deck.startswith("gambit://"):
        uri, _ = modern_deck(deck)
        if not is_builtin_deck(uri):
            hint = builtin_deck_hint(uri)
            raise Refused(f"there is no built-in deck {name}" + _more(hint))
    elif Path(deck).is_dir():
        if not has_deck(deck):
            raise Refused(f"there is no {PROMPT} in {name}" + _decks_below(deck))
    elif not Path(deck).exists():
        raise Refused(f"there is no deck at {name}")
    elif not is_deck_file(Path(deck).name):
        raise Refused(f"{name} is not a deck: name a {PROMPT}, or a folder with one")


def refuse_another_deck(deck: str | None) -> None:
    """Look whether there is a deck where ``--deck`` says, if it says something.

    Raises:
        Refused: there is none.
    """
    if deck is not None:
        refuse_what_is_no_deck(deck)


def context_from(given: str | None) -> JSONValue:
    """What ``--context`` says: JSON, or @ and the name of a file with JSON in it.

    Raises:
        Refused: it is not JSON, or there is no such file.
    """
    if given is None:
        return msgspec.UNSET
    name, text = "--context", given.encode(errors="surrogateescape")
    if given.startswith("@"):
        name = printable(f"--context {given}")
        try:
            text = Path(given[1:]).read_bytes()
        except OSError as problem:
            raise Refused(f"{name}: {problem.strerror}") from problem
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise Refused(f"{name} is not JSON: {_json_fault(text, problem)}") from problem


def script_from(path: Path) -> Script:
    """Read a script.

    Raises:
        Refused: it is not one.
    """
    try:
        return script_in(path)
    except BadScript as problem:
        words = f"--script {path}: {problem}"
        if path.suffix not in (".jsonl", ".toml"):
            words += "\nA script is TOML (.toml) or has a JSON object a line (.jsonl)."
        raise Refused(printable(words)) from problem


def prices_from(given: tuple[str, ...]) -> dict[str, Price]:
    """What ``--price`` says, by model.

    Raises:
        Refused: it is not a model and two amounts.
    """
    prices = {}
    for one in given:
        model, _, amounts = one.rpartition("=")
        try:
            into, out = map(float, amounts.split(","))
        except ValueError:
            into = out = -1.0
        if not model or not (0 <= into < math.inf and 0 <= out < math.inf):
            msg = "is not MODEL=INPUT,OUTPUT, such as acme/small=0.25,2"
            raise Refused(printable(f"--price {one} {msg}"))
        prices[model] = Price(input=into, output=out)
    return prices


def context_hint(asked: Asked) -> str | None:
    """How to give the deck what it wants to know; None if it was given, or wants none.

    Raises:
        InvalidDeck: the deck has mistakes.
    """
    schema = load_deck(DiskReader(), asked.deck).usable().context_schema
    if asked.context is not None or schema is None or schema.schema is None:
        return None
    nothing: list[JSONValue] = [{}, ""]
    if any(schema.validator.check(empty).is_valid for empty in nothing):
        return None
    sample = _sample(schema.schema)
    if not schema.validator.check(sample).is_valid:
        return "Give it with --context JSON, or --context @FILE."
    words = msgspec.json.encode(sample).decode()
    return f"Give it with --context, such as: --context '{words}'"


def _sample(schema: Schema) -> JSONValue:
    """The least that may fit a schema; what has to be there, each with some value."""
    unfolder = Unfolder(schema)
    form = unfolder.form(schema)
    if form.types != ("object",):
        return _SAMPLES.get(form.types)
    fields, wanted = properties(form.objects[0]), required(form.objects[0])
    return {
        key: _sample_value(unfolder, field)
        for key, field in fields.items()
        if key in wanted
    }


def _sample_value(unfolder: Unfolder, field: JSONValue) -> JSONValue:
    if isinstance(field, dict) and isinstance(choices := field.get("enum"), list):
        return choices[0] if choices else None
    return _SAMPLES.get(unfolder.form(field).types)


def _decks_below(folder: str) -> str:
    found = [printable(deck) for deck in find_decks([folder]).decks]
    found.sort(key=lambda deck: deck.count("/"))  # The others are parts of these.
    if not found:
        return ", nor in a folder below it"
    listed = "".join(f"\n  {deck}" for deck in found[:_MOST_DECKS])
    more = len(found) - _MOST_DECKS
    return f"; name a deck:{listed}" + (f"\n  and {more} more" if more > 0 else "")


def _more(hint: str | None) -> str:
    return "" if hint is None else f". {hint}"


def _json_fault(text: bytes, problem: Exception) -> str:
    """What keeps a text from being JSON, with the place below it if there is one."""
    try:
        json.loads(text)
    except json.JSONDecodeError as found:
        line = found.doc.split("\n")[found.lineno - 1]
        start = max(0, found.colno - _CUT_CHARACTERS)
        shown = line[start : start + 2 * _CUT_CHARACTERS].replace("\t", " ")
        mark = " " * (found.colno - 1 - start) + "^"
        place = f"line {found.lineno}, column {found.colno}"
        return f"{found.msg.lower()}, {place}\n  {printable(shown)}\n  {mark}"
    except (ValueError, RecursionError):
        pass
    return str(problem)
