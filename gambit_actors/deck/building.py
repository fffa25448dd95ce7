"""One PROMPT.md becomes one deck, with what its snippets bring."""

from typing import cast

import msgspec

from gambit_actors.deck.documents import Document
from gambit_actors.deck.embedding import Embedder
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.fragments import with_fragment
from gambit_actors.deck.keys import TOP_LEVEL_KEYS
from gambit_actors.deck.legacy import FRAGMENTS, LISTS, OLD_SCHEMAS, SCHEMAS
from gambit_actors.deck.loading import Loading
from gambit_actors.deck.model import (
    Action,
    Deck,
    DeckReference,
    Link,
    Role,
    StartMode,
    Tool,
)
from gambit_actors.deck.own_files import writable_source
from gambit_actors.deck.references import ReferenceReader, current_key
from gambit_actors.deck.sections import read_guardrails, read_model_params
from gambit_actors.deck.tables import Table
from gambit_actors.schema.schemas import LoadedSchema

_REFUSED_KEYS = {
    "execute": (
        "GD006",
        "A deck cannot have a top-level execute.",
        "Put the code behind an action: [[actions]] with execute.",
    ),
    "mcpServers": (
        "GD007",
        "mcpServers is reserved and not supported.",
        "Declare external tools with [[tools]] and run them in onTool.",
    ),
    "onTool": (
        "GD008",
        "onTool is not a key of a deck.",
        "It is passed to the runtime by the program that runs the deck.",
    ),
}
_IDLE = "it is not part of the deck format"
_NEWER = "it belongs to a newer Gambit than the format that is read here"
_IDLE_KEYS = {
    "acceptsUserTurns": _IDLE,
    "description": _IDLE + "; describe a deck where it is referred to, or in INTENT.md",
    "input": _IDLE,
    "maxTurns": "it belongs into the [[scenarios]] entry that refers to this deck",
    "responseItemExtensions": _NEWER,
    "workloop": _NEWER,
}
_SNIPPET_KEYS = (
    "actions",
    "allowEnd",
    "contextFragment",
    "description",
    "graders",
    "label",
    "respond",
    "responseFragment",
    "scenarios",
)
_IDLE_SNIPPET_KEYS = dict.fromkeys(
    sorted(TOP_LEVEL_KEYS - set(_SNIPPET_KEYS) - {"handlers"}),
    "a snippet cannot set it, only the deck that embeds it",
)


class DeckBuilder:
    """Builds one deck, and finds what is wrong with it and its snippets."""

    def __init__(self, loading: Loading, document: Document) -> None:
        self.findings = Findings(loading.legacy)
        self.test_findings = Findings(loading.legacy)
        self.root_findings = Findings(loading.legacy)
        self._loading = loading
        self._document = document
        self._path = document.source.file
        self._references = ReferenceReader(
            loading,
            self._path,
            test_findings=self.test_findings,
            root_findings=self.root_findings,
        )

    def build(self) -> Deck:
        """Read everything; the deck counts only if there are no errors."""
        document, findings = self._document, self.findings
        findings.extend(self._loading.problems(document))
        top = Table(document, findings, document.values)
        self._check_top_keys(top)
        embedded = Embedder(self._loading, findings).embed(document)
        snippets = [Table(s, findings, s.values) for s in embedded.snippets]
        for snippet in snippets:
            self._check_snippet_keys(snippet)
        if not embedded.prompt and not findings.has_errors:
            self._note_empty(document)
        actions = self._actions(top, snippets)
        deck = Deck(
            path=self._path,
            prompt=embedded.prompt,
            label=top.text("label"),
            start_mode=cast(
                StartMode | None, top.choice("startMode", ("assistant", "user"))
            ),
            context_schema=self._schema("contextSchema", top, snippets),
            response_schema=self._schema("responseSchema", top, snippets),
            respond=_flag("respond", [top, *snippets]),
            allow_end=_flag("allowEnd", [top, *snippets]),
            model_params=read_model_params(top.table("modelParams")),
            guardrails=read_guardrails(top.table("guardrails")),
            permissions=self._references.permissions(top),
            handlers=self._references.handlers(top.table("handlers")),
            actions=tuple(actions.values()),
            tools=tuple(self._tools(top, actions).values()),
            scenarios=self._decks("scenarios", top, snippets),
            graders=self._decks("graders", top, snippets),
        )
        self._references.follow(deck)
        self._references.check_permissions(deck.permissions)
        sources = _sources(deck, [s.source.file for s in embedded.snippets])
        deck = msgspec.structs.replace(deck, sources=sources)
        self._check_own_files(deck, top)
        return deck

    def _note_empty(self, document: Document) -> None:
        message = "The prompt is empty; say what the model is to do."
        at = document.body.start
        self.findings.add(document.source.finding("GD044", "warning", message, at=at))

    def _check_own_files(self, deck: Deck, top: Table) -> None:
        """Say that a deck may write what says how much it may do."""
        file = writable_source(deck, self._loading.reader.real_path)
        if file is None or deck.permissions is None:
            return
        # A deck that another one runs has no more than that, whatever it asks for.
        is_all = deck.permissions.write is True
        findings = self.root_findings if is_all else self.findings
        path = ("permissions",)
        table = Table(top.document, findings, top.values["permissions"], path)
        message = (
            f"The deck may write {file}, which it is made from, and so change what it"
            " may do."
        )
        hint = "Grant a folder below the deck's own, such as ./data."
        table.report("GD063", "warning", message, key="write", hint=hint)

    def _check_top_keys(self, top: Table) -> None:
        for key, (code, message, hint) in _REFUSED_KEYS.items():
            if key in top:
                top.report(code, "error", message, key=key, hint=hint)
        known = (*TOP_LEVEL_KEYS, *LISTS, *SCHEMAS, *_REFUSED_KEYS)
        top.check_keys(known, idle=_IDLE_KEYS)

    def _check_snippet_keys(self, snippet: Table) -> None:
        if "handlers" in snippet:
            message = "A snippet cannot have handlers; put them in the deck."
            snippet.report("GD054", "error", message, key="handlers")
        known = (*_SNIPPET_KEYS, *LISTS, *FRAGMENTS, "handlers")
        snippet.check_keys(known, idle=_IDLE_SNIPPET_KEYS)

    def _actions(self, top: Table, snippets: list[Table]) -> dict[str, Action]:
        """The actions by name: a later snippet overrules an earlier, the deck all."""
        found: dict[str, Action] = {}
        for table in [*snippets, top]:
            found |= self._references.actions(table)
        return found

    def _tools(self, top: Table, actions: dict[str, Action]) -> dict[str, Tool]:
        """The tools that the model is offered: those no action has the name of."""
        tools = self._references.tools(top)
        shadowed = tools.keys() & actions.keys()
        for entry in top.tables("tools"):
            name = entry.text("name")
            if name in shadowed:
                shadowed.remove(name)
                message = (
                    f"The tool {name} has the name of an action, which is called"
                    " instead; rename one."
                )
                entry.report("GD023", "warning", message, key="name")
        return {name: tool for name, tool in tools.items() if name not in actions}

    def _decks(
        self, key: str, top: Table, snippets: list[Table]
    ) -> tuple[DeckReference, ...]:
        found: dict[str, DeckReference] = {}
        role: Role = "scenario" if key == "scenarios" else "grader"
        for table in [top, *snippets]:
            brought = self._references.decks(table, key, role)
            found |= {path: deck for path, deck in brought.items() if path not in found}
        return tuple(found.values())

    def _schema(
        self, key: str, top: Table, snippets: list[Table]
    ) -> LoadedSchema | None:
        schema = self._references.schema(top, key)
        if schema is None and (key in top or OLD_SCHEMAS[key] in top):
            return None  # It has an error; a fragment would only hide that.
        fragment_key = key.replace("Schema", "Fragment")
        old = next(old for old, new in FRAGMENTS.items() if new == fragment_key)
        for snippet in snippets:
            used = current_key(snippet, fragment_key, old, "GD081")
            fragment = self._loading.schema(snippet, used)
            if fragment is not None:
                schema = with_fragment(schema, fragment, table=snippet, key=used)
        return schema


def _flag(key: str, tables: list[Table]) -> bool:
    # A list, so that every table is read and its mistakes are found.
    return any([bool(table.flag(key)) for table in tables])  # noqa: C419


def _sources(deck: Deck, snippets: list[str]) -> tuple[str, ...]:
    schemas = [deck.context_schema, deck.response_schema]
    schemas += [tool.input_schema for tool in deck.tools]
    modules = []
    for action in deck.actions:
        if not isinstance(action.target, Link):
            modules.append(action.target.path)
            schemas += [action.target.context_schema, action.target.response_schema]
    files = [deck.path, *snippets, *(s.source for s in schemas if s), *modules]
    return tuple(dict.fromkeys(f for f in files if not f.startswith("gambit://")))
