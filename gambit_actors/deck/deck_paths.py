"""Following a path in a deck to another deck.

A path leads to a PROMPT.md, from the file it is written in, or to a built-in deck. What
else people write there is recognised, explained and, where it can be, followed all the
same, so that the other mistakes are found as well.
"""

from gambit_actors.deck.builtin import DECK_SCHEME, DECKS, closest_name
from gambit_actors.deck.legacy import modern_deck
from gambit_actors.deck.loading import Loading
from gambit_actors.deck.model import Link, Role
from gambit_actors.deck.tables import Table
from gambit_actors.schema.diagnostics import Edit
from gambit_actors.schema.schemas import joined

_ENTRYPOINT = "PROMPT.md"
_SLASHES = "Paths are written with forward slashes, on every system."


class DeckFinder:
    """Finds the decks that references lead to."""

    def __init__(self, loading: Loading) -> None:
        self._reader = loading.reader

    def find(self, table: Table, role: Role, *, is_legacy: bool) -> Link | None:
        """Follow the path in a reference; None if there is no deck there.

        Args:
            table: the reference.
            role: what the deck is to be.
            is_legacy: whether the reference stands in a list with an old name, which
                never asked what a deck's file is called.
        """
        reference = table.text("path", required=True)
        if reference is None:
            return None
        if reference.startswith("gambit://"):
            return self._builtin_link(table, reference)
        is_checked = role != "handler" and not is_legacy
        path = self._deck_path(table, reference, is_checked=is_checked)
        if path is not None and self._reader.read_text(path) is None:
            message = f"There is no deck at {path}."
            hint = _SLASHES if "\\" in reference else None
            table.report("GD032", "error", message, key="path", hint=hint)
            return None
        return None if path is None else Link(path)

    def _deck_path(
        self, table: Table, reference: str, *, is_checked: bool
    ) -> str | None:
        """The file that a path means, if it can be the file of a deck."""
        read_text = self._reader.read_text
        path = joined(table.document.source.file, reference)
        if path.rpartition("/")[2] == _ENTRYPOINT:
            return path
        if self._reader.is_folder(path):
            path = f"{path}/{_ENTRYPOINT}"
            if read_text(path) is not None:
                self._refuse_folder(table, reference)
            return path
        self._doubt_name(table, reference, is_checked=is_checked)
        # A deck under another name is read all the same: it may have other mistakes.
        is_deck = path.endswith(".md") and not (is_checked and read_text(path) is None)
        return path if is_deck else None

    def _builtin_link(self, table: Table, reference: str) -> Link | None:
        uri, code = modern_deck(reference)
        if not is_builtin_deck(uri):
            message = f"There is no built-in deck {reference}."
            hint = builtin_deck_hint(uri)
            table.report("GD033", "error", message, key="path", hint=hint)
            return None
        if code is not None:
            message = f"{reference} is an old spelling; write {uri}."
            table.report(
                code, "warning", message, key="path", edits=_path_edit(table, uri)
            )
        return Link(uri)

    def _refuse_folder(self, table: Table, reference: str) -> None:
        better = f"{reference.rstrip('/')}/{_ENTRYPOINT}"
        message = f"path points at a folder; write {better}."
        edits = _path_edit(table, better)
        table.report("GD030", "error", message, key="path", edits=edits)

    def _doubt_name(self, table: Table, reference: str, *, is_checked: bool) -> None:
        is_markdown = reference.endswith(".md")
        if is_markdown and not is_checked:
            message = f"{reference} is a deck under an old name; call it {_ENTRYPOINT}."
            table.report("GD086", "warning", message, key="path")
            return
        hint = _SLASHES if "\\" in reference else None
        if reference.endswith((".py", ".ts")):
            hint = "An action runs code with execute instead of path."
        message = f"path must point at a {_ENTRYPOINT}, and this is {reference}."
        table.report("GD031", "error", message, key="path", hint=hint)


def _path_edit(table: Table, path: str) -> tuple[Edit, ...]:
    span = table.document.place((*table.path, "path"))
    return (Edit(start=span.start, end=span.end, text=f'"{path}"'),)


def is_builtin_deck(uri: str) -> bool:
    """Whether there is a built-in deck with this URI, as it is spelled today."""
    return uri.startswith(DECK_SCHEME) and uri.removeprefix(DECK_SCHEME) in DECKS


def builtin_deck_hint(uri: str) -> str | None:
    """Guess which built-in deck a URI was meant to name."""
    closest = closest_name(uri, [DECK_SCHEME + name for name in DECKS])
    return None if closest is None else f"Did you mean {closest}?"
