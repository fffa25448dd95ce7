"""What a deck refers to: actions, tools, scenarios, graders and handlers."""

import re
from collections.abc import Iterator
from typing import TypeVar, cast

import msgspec

from gambit_actors.deck.contracts import module_contract
from gambit_actors.deck.deck_paths import DeckFinder
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.legacy import LISTS, OLD_SCHEMAS, SCHEMAS
from gambit_actors.deck.loading import Loading, Use
from gambit_actors.deck.model import (
    ON_DOUBT,
    Action,
    Deck,
    DeckReference,
    Handler,
    Handlers,
    Link,
    Module,
    OnDoubt,
    Role,
    Tool,
)
from gambit_actors.deck.permissions import NOTHING, Permissions, excess
from gambit_actors.deck.sections import read_permissions, seconds
from gambit_actors.deck.tables import Table, did_you_mean
from gambit_actors.schema.diagnostics import Edit
from gambit_actors.schema.schemas import LoadedSchema, joined

BUILTIN_TOOLS = frozenset(
    {"apply_patch", "exec", "grep_files", "list_dir", "read_file"}
)
"""Tools that a deck gets by its permissions; their names are taken."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_NAME = 64
_RESERVED = "gambit_"
_ACTION_KEYS = (
    "contextSchema",
    "description",
    "execute",
    "id",
    "label",
    "name",
    "onDoubt",
    "path",
    "permissions",
    "responseSchema",
)
_TOOL_KEYS = ("description", "id", "inputSchema", "label", "name", "onDoubt")
_NEWER = "it belongs to a newer Gambit than the format that is read here"
_IDLE_ACTION_KEYS = dict.fromkeys(("asyncStart", "intermediateOutput"), _NEWER)


class Entry(msgspec.Struct, frozen=True):
    """An entry of a list of references, and whether the list has its old name."""

    table: Table
    is_legacy: bool


def entries(table: Table, key: str) -> list[Entry]:
    """The entries of a list, with those under its old name behind them."""
    found = [Entry(entry, is_legacy=False) for entry in table.tables(key)]
    old = next((old for old, new in LISTS.items() if new == key), "")
    if old not in table:
        return found
    edits = tuple(
        Edit(start=span.start, end=span.end, text=key)
        for span in table.document.key_uses((*_names(table), old))
    )
    message = f"{old} is the old name of {key}; write [[{key}]]."
    table.report("GD080", "warning", message, key=old, edits=edits)
    return found + [Entry(entry, is_legacy=True) for entry in table.tables(old)]


def current_key(table: Table, key: str, old: str, code: str) -> str:
    """The key to read: the one of today, or the old one with a word about it."""
    if old not in table:
        return key
    if key in table:
        message = f"{old} is the old name of {key}, which is here too; remove {old}."
        table.report(code, "warning", message, key=old)
        return key
    path = (*table.path, old)
    spans = table.document.key_uses((*_names(table), old))
    if not isinstance(table.values[old], dict):
        spans = [table.document.key_place(path)]
    edits = tuple(Edit(start=s.start, end=s.end, text=key) for s in spans)
    message = f"{old} is the old name of {key}; write {key}."
    table.report(code, "warning", message, key=old, edits=edits)
    return old


class ReferenceReader:
    """Reads the references of one deck, from its own file and from its snippets.

    Args:
        loading: finds what is referred to.
        owner: the path of the deck.
        test_findings: takes what is wrong with a scenario or a grader. That is no
            reason not to run the deck.
        root_findings: takes what is wrong only if no other deck runs this one.
    """

    def __init__(
        self,
        loading: Loading,
        owner: str,
        *,
        test_findings: Findings,
        root_findings: Findings,
    ) -> None:
        self._loading = loading
        self._owner = owner
        self._test_findings = test_findings
        self._root_findings = root_findings
        self._finder = DeckFinder(loading)
        self._asked: list[tuple[Table, Permissions]] = []
        self._uses: list[Use] = []

    def actions(self, table: Table) -> dict[str, Action]:
        """Read ``[[actions]]``, by name."""
        found: dict[str, Action] = {}
        for entry in entries(table, "actions"):
            action = self._action(entry)
            if action is not None:
                _put_once(found, action.name, action, entry.table)
        return found

    def tools(self, table: Table) -> dict[str, Tool]:
        """Read ``[[tools]]``, by name."""
        found: dict[str, Tool] = {}
        for entry in table.tables("tools"):
            entry.check_keys(_TOOL_KEYS)
            name = _callable_name(entry)
            schema = self._loading.schema(entry, "inputSchema")
            tool = Tool(
                name=name or "",
                description=entry.text("description"),
                input_schema=schema,
                label=entry.text("label"),
                id=entry.text("id"),
                on_doubt=_on_doubt(entry, "ask"),
            )
            if name is not None:
                _put_once(found, name, tool, entry)
        return found

    def decks(self, table: Table, key: str, role: Role) -> dict[str, DeckReference]:
        """Read ``[[scenarios]]`` or ``[[graders]]``, by the path of the deck."""
        found: dict[str, DeckReference] = {}
        for entry in entries(table, key):
            reference = self._deck_reference(self._as_test(entry), role)
            if reference is None:
                continue
            path = reference.link.path
            if path in found:
                message = f"{path} is listed before; this entry is ignored."
                entry.table.report("GD034", "warning", message)
            else:
                found[path] = reference
        return found

    def handlers(self, table: Table | None) -> Handlers:
        """Read ``[handlers]``."""
        if table is None:
            return Handlers()
        busy = current_key(table, "onBusy", "onInterval", "GD082")
        table.check_keys(("onBusy", "onError", "onIdle", "onInterval"))
        return Handlers(
            on_busy=self._handler(table.table(busy), is_timed=True),
            on_idle=self._handler(table.table("onIdle"), is_timed=True),
            on_error=self._handler(table.table("onError"), is_timed=False),
        )

    def follow(self, deck: Deck) -> None:
        """Have what a deck refers to read; what it overruled is of no interest."""
        kept = {id(link) for link in links(deck)}
        for use in self._uses:
            if id(use.link) in kept:
                self._loading.use(use)

    def check_permissions(self, own: Permissions | None) -> None:
        """Say which references ask for more than the deck itself has."""
        if own is None:
            # Then it has what its parent leaves it, which is not known here.
            self._note_nothing_to_narrow()
            return
        for table, asked in self._asked:
            for words in excess(asked, own):
                message = f"The deck does not have this permission itself: {words}."
                hint = "A reference can only narrow what its deck has."
                table.report("GD061", "warning", message, key="permissions", hint=hint)

    def _note_nothing_to_narrow(self) -> None:
        """Say which actions ask for something, in case the deck has no parent."""
        for table, asked in self._asked:
            words = excess(asked, NOTHING)
            if table.path[0] not in ("actions", "actionDecks") or not words:
                continue
            there = Table(table.document, self._root_findings, table.values, table.path)
            message = (
                f"The deck has no [permissions], so this allows nothing:"
                f" {'; '.join(words)}."
            )
            kinds = " and ".join(word.partition(":")[0] for word in words)
            hint = (
                f"Add {kinds} to the deck's own [permissions]; a reference can only"
                " narrow what its deck has."
            )
            there.report("GD062", "warning", message, key="permissions", hint=hint)

    def permissions(self, table: Table) -> Permissions | None:
        """Read the permissions in a table; paths are relative to its file."""
        file = table.document.source.file

        def resolve(path: str) -> str:
            return self._loading.reader.real_path(joined(file, path))

        return read_permissions(table.table("permissions"), resolve)

    def schema(self, table: Table, key: str) -> LoadedSchema | None:
        """Load a schema of a deck or an action, by its key of today or of old."""
        old = OLD_SCHEMAS[key]
        return self._loading.schema(table, current_key(table, key, old, "GD081"))

    def _narrowed(self, table: Table) -> Permissions | None:
        """Read the permissions of a reference, and remember what it asks for."""
        permissions = self.permissions(table)
        if permissions is not None:
            self._asked.append((table, permissions))
        return permissions

    def _as_test(self, entry: Entry) -> Entry:
        table = entry.table
        there = Table(table.document, self._test_findings, table.values, table.path)
        return Entry(there, is_legacy=entry.is_legacy)

    def _action(self, entry: Entry) -> Action | None:
        table = entry.table
        table.check_keys((*_ACTION_KEYS, *SCHEMAS), idle=_IDLE_ACTION_KEYS)
        name = _callable_name(table)
        # The old list did not ask for descriptions, so its decks may have none.
        description = table.text("description", required=not entry.is_legacy)
        inline = {
            key: schema
            for key in SCHEMAS.values()
            if (schema := self.schema(table, key)) is not None
        }
        permissions = self._narrowed(table)
        target = self._target(entry, inline)
        label, id_ = table.text("label"), table.text("id")
        on_doubt = _on_doubt(table, "retry")
        if name is None or target is None:
            return None
        return Action(
            name=name,
            description=description or "",
            target=target,
            permissions=permissions,
            on_doubt=on_doubt,
            label=label,
            id=id_,
        )

    def _target(
        self, entry: Entry, inline: dict[str, LoadedSchema]
    ) -> Link | Module | None:
        table = entry.table
        if ("path" in table) == ("execute" in table):
            both = "path" in table
            strange = table.values.keys() - {*_ACTION_KEYS}
            if not both and any(did_you_mean(k, ("path", "execute")) for k in strange):
                return None  # A misspelt one has been found.
            message = (
                "An action has either a path or an execute, not both."
                if both
                else "An action needs a path to a deck, or an execute to a module."
            )
            table.report("GD020", "error", message, key="execute" if both else ())
            return None
        if "execute" in table:
            return module_contract(self._loading, table, inline)
        link = self._finder.find(entry.table, "action", is_legacy=entry.is_legacy)
        if link is not None:
            self._uses.append(
                Use(
                    link=link,
                    role="action",
                    owner=self._owner,
                    table=table,
                    schemas=inline,
                )
            )
        return link

    def _deck_reference(self, entry: Entry, role: Role) -> DeckReference | None:
        table = entry.table
        keys = ("description", "id", "label", "path", "permissions")
        is_scenario = role == "scenario"
        table.check_keys((*keys, "maxTurns") if is_scenario else keys)
        max_turns = table.whole("maxTurns", least=1) if is_scenario else None
        permissions = self._narrowed(table)
        description, label = table.text("description"), table.text("label")
        id_ = table.text("id")
        link = self._finder.find(table, role, is_legacy=entry.is_legacy)
        if link is None:
            return None
        self._uses.append(Use(link=link, role=role, owner=self._owner, table=table))
        return DeckReference(
            link=link,
            label=label,
            description=description,
            id=id_,
            permissions=permissions,
            max_turns=max_turns,
        )

    def _handler(self, table: Table | None, *, is_timed: bool) -> Handler | None:
        if table is None:
            return None
        delay_seconds = repeat_seconds = None
        if is_timed:
            repeat = current_key(table, "repeatMs", "intervalMs", "GD082")
            delay_seconds = seconds(table, "delayMs")
            repeat_seconds = seconds(table, repeat)
        timed = ("delayMs", "repeatMs", "intervalMs") if is_timed else ()
        table.check_keys(("label", "path", *timed))
        label = table.text("label")
        link = self._finder.find(table, "handler", is_legacy=True)
        if link is None:
            return None
        use = Use(link=link, role="handler", owner=self._owner, table=table)
        self._uses.append(use)
        return Handler(
            link=link,
            label=label,
            delay_seconds=delay_seconds,
            repeat_seconds=repeat_seconds,
        )


def links(deck: Deck) -> Iterator[Link]:
    """The decks that a deck refers to."""
    handlers = (deck.handlers.on_busy, deck.handlers.on_idle, deck.handlers.on_error)
    yield from (handler.link for handler in handlers if handler is not None)
    yield from (reference.link for reference in (*deck.scenarios, *deck.graders))
    yield from (a.target for a in deck.actions if isinstance(a.target, Link))


def _on_doubt(table: Table, usual: OnDoubt) -> OnDoubt:
    """Read what is done when nobody knows whether a call has happened."""
    chosen = table.choice("onDoubt", ON_DOUBT)
    return usual if chosen is None else cast(OnDoubt, chosen)


def _callable_name(table: Table) -> str | None:
    """Read a name that a model is to call."""
    name = table.text("name", required=True)
    if name is None:
        return None
    if name in BUILTIN_TOOLS:
        message = f"{name} is the name of a built-in tool; choose another."
        table.report("GD024", "error", message, key="name")
        return None
    if name.startswith(_RESERVED):
        message = f"Names that start with {_RESERVED} are reserved; choose another."
    elif _NAME.fullmatch(name) is None or len(name) > _LONGEST_NAME:
        message = (
            f"{name[:_LONGEST_NAME]} is not a name a model can call: use letters,"
            f" digits and _, no digit first, at most {_LONGEST_NAME} in all."
        )
    else:
        return name
    table.report("GD021", "error", message, key="name")
    return None


_Named = TypeVar("_Named", Action, Tool)


def _put_once(found: dict[str, _Named], name: str, value: _Named, table: Table) -> None:
    if name in found:
        message = f"The name {name} is given twice; each needs one of its own."
        table.report("GD022", "error", message, key="name")
    else:
        found[name] = value


def _names(table: Table) -> Iterator[str]:
    """The keys of a table's path, without the indexes of lists."""
    return (step for step in table.path if isinstance(step, str))
