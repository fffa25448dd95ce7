"""What a deck must have because of how another deck refers to it.

A deck has no role of its own: the same folder can be started directly and be another
deck's action. So these rules are checked for each reference, when both its ends are
known. What they find is said in the file of the deck that has to change.
"""

from collections.abc import Iterator

from gambit_actors.deck.contracts import KEYS, compare
from gambit_actors.deck.documents import Document
from gambit_actors.deck.legacy import OLD_SCHEMAS
from gambit_actors.deck.loading import Use
from gambit_actors.deck.model import Deck, Role
from gambit_actors.schema.diagnostics import Diagnostic, Severity
from gambit_actors.schema.forms import Unfolder
from gambit_actors.schema.matching import GraderProblem, grader_problems
from gambit_actors.schema.schemas import LoadedSchema

_RESPONDING: frozenset[Role] = frozenset({"action", "grader"})
_MOST_PROBLEMS = 5
_ARTICLES = {"action": "an action", "scenario": "a scenario", "grader": "a grader"}


def role_findings(use: Use, deck: Deck, document: Document) -> Iterator[Diagnostic]:
    """Say what keeps a deck from the role in which it is used."""
    if use.role not in _ARTICLES:
        return  # Anything can be a handler.
    about = _About(use, document)
    yield from _missing_schemas(about, deck)
    is_ours = deck.path.startswith("gambit://")  # No author can change those.
    is_mistaken = not isinstance(document.values.get("respond", False), bool)
    is_silent = not (deck.respond or is_ours or is_mistaken)
    if use.role in _RESPONDING and is_silent:
        message = f"{about.opening} should embed the respond snippet."
        hint = "Add ![respond](gambit://snippets/respond.md) to the prompt."
        yield about.finding("GD043", "warning", message, hint=hint)
    if use.role == "scenario":
        yield from _plain_chat(about, deck)
    if use.role == "grader":
        yield from _grader(about, deck)


def compare_schemas(use: Use, deck: Deck) -> None:
    """Say where the schemas beside a reference differ from those of its deck."""
    own = {"contextSchema": deck.context_schema, "responseSchema": deck.response_schema}
    for key, schema in use.schemas.items():
        other = own[key]
        if other is not None:
            compare(use.table, key, schema, other, other=deck.path)


class _About:
    """Words about one deck in one role, placed at the top of its file."""

    def __init__(self, use: Use, document: Document) -> None:
        self._document = document
        self._reference = f"It is {_ARTICLES[use.role]} of {use.owner}."
        self.opening = f"A deck that is {_ARTICLES[use.role]}"

    def declares(self, key: str) -> bool:
        """Whether the deck says something under a key, if only a mistake."""
        values = self._document.values
        return key in values or OLD_SCHEMAS[key] in values

    def finding(
        self,
        code: str,
        severity: Severity,
        message: str,
        *,
        key: str | None = None,
        hint: str | None = None,
    ) -> Diagnostic:
        document = self._document
        at = document.toml.start
        if key is not None and key in document.values:
            at = document.place((key,)).start
        hint = self._reference if hint is None else f"{hint} {self._reference}"
        return document.source.finding(code, severity, message, at=at, hint=hint)


def _missing_schemas(about: _About, deck: Deck) -> Iterator[Diagnostic]:
    declared = (deck.context_schema, deck.response_schema)
    for key, schema in zip(KEYS, declared, strict=True):
        if schema is None and not about.declares(key):
            message = f"{about.opening} must declare a {key}."
            yield about.finding("GD040", "error", message)


def _plain_chat(about: _About, deck: Deck) -> Iterator[Diagnostic]:
    if deck.respond or deck.response_schema is None:
        return
    if not _is_string(deck.response_schema):
        message = f"{about.opening} and answers in plain text should give a string."
        hint = (
            "Use gambit://schemas/scenarios/plain_chat_output.zod.ts, or embed the"
            " respond snippet."
        )
        yield about.finding(
            "GD042", "warning", message, key="responseSchema", hint=hint
        )


def _is_string(loaded: LoadedSchema) -> bool:
    schema = loaded.schema or {}
    return Unfolder(schema).form(schema).types == ("string",)


def _grader(about: _About, deck: Deck) -> Iterator[Diagnostic]:
    if deck.context_schema is None or deck.response_schema is None:
        return  # That has been said.
    context, response = deck.context_schema.schema, deck.response_schema.schema
    found: dict[str, list[GraderProblem]] = {}
    for problem in grader_problems(context or {}, response or {}):
        found.setdefault(problem.key, []).append(problem)
    for key, problems in found.items():
        words = "; ".join(map(str, problems[:_MOST_PROBLEMS]))
        more = len(problems) - _MOST_PROBLEMS
        words += f"; and {more} more" if more > 0 else ""
        message = f"{key} is not compatible with {problems[0].base}: {words}."
        yield about.finding("GD041", "error", message, key=key)
