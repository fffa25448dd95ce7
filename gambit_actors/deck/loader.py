"""Load a deck and everything it refers to, in one pass, without side effects.

Every deck of the tree is read once, whoever refers to it and however often, and also
if decks refer to each other in a circle. Then each reference is checked with both its
ends known. A deck can be used if neither it nor an action or handler it needs has an
error; a broken scenario or grader does not keep the deck it tests from running.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gambit_actors.deck.building import DeckBuilder
from gambit_actors.deck.deck_paths import builtin_deck_hint, is_builtin_deck
from gambit_actors.deck.documents import Document, Source
from gambit_actors.deck.findings import LEGACY, Findings, LegacyPolicy
from gambit_actors.deck.legacy import modern_deck
from gambit_actors.deck.loading import Loading, Use
from gambit_actors.deck.model import Deck
from gambit_actors.deck.observing import ObservingReader
from gambit_actors.deck.pieces import Pieces, Recent
from gambit_actors.deck.reader import DeckReader
from gambit_actors.deck.roles import compare_schemas, role_findings
from gambit_actors.errors import InvalidDeck
from gambit_actors.schema.diagnostics import Diagnostic
from gambit_actors.schema.schemas import joined

_ENTRYPOINT = "PROMPT.md"
_OLD_ENTRYPOINT = "root.deck.md"
_MAX_TREES = 1024


class Loaded(NamedTuple):
    """A deck, or None if it cannot be used; and all there is to say about the tree."""

    deck: Deck | None
    diagnostics: tuple[Diagnostic, ...]

    def usable(self) -> Deck:
        """Give the deck.

        Raises:
            InvalidDeck: it has errors.
        """
        if self.deck is None:
            errors = [d for d in self.diagnostics if d.severity == "error"]
            raise InvalidDeck(errors)
        return self.deck


class DeckCache:
    """Keeps what has been loaded for as long as it is true.

    Everything is kept by content. A tree is handed out again, the very same object, if
    every question that was asked to load it would be answered the same way; otherwise
    it is put together anew, from the pieces that did not change.
    """

    def __init__(self) -> None:
        self.pieces = Pieces()
        self._trees: Recent[tuple[str, LegacyPolicy], tuple[ObservingReader, Loaded]]
        self._trees = Recent(_MAX_TREES)

    def load(
        self, reader: DeckReader, reference: str, *, legacy: LegacyPolicy = LEGACY
    ) -> Loaded:
        """Load a deck, doing again only what has to be; see `load_deck`."""
        known = self._trees.get((reference, legacy))
        if known is not None and known[0].is_current(reader):
            return known[1]
        observing = ObservingReader(reader)
        decks, diagnostics = _load(Loading(observing, self.pieces, legacy), [reference])
        loaded = Loaded(decks[0], diagnostics)
        self._trees.put((reference, legacy), (observing, loaded))
        return loaded


def load_deck(
    reader: DeckReader,
    reference: str,
    *,
    legacy: LegacyPolicy = LEGACY,
    cache: DeckCache | None = None,
) -> Loaded:
    """Load a deck with all that it refers to.

    Args:
        reader: where files are read from.
        reference: a PROMPT.md, a folder with one, or a ``gambit://decks/...`` URI.
        legacy: whether deprecated keys and URIs warn or are errors.
        cache: what to keep for the next time.

    Returns:
        The deck, None if it has errors, and all diagnostics of the tree. An author's
        mistake is never raised.
    """
    return (cache or DeckCache()).load(reader, reference, legacy=legacy)


class LoadedDecks(NamedTuple):
    """Several decks, None for each that cannot be used, and what there is to say."""

    decks: tuple[Deck | None, ...]
    diagnostics: tuple[Diagnostic, ...]


def load_decks(
    reader: DeckReader,
    references: Sequence[str],
    *,
    legacy: LegacyPolicy = LEGACY,
    cache: DeckCache | None = None,
) -> LoadedDecks:
    """Load several decks at once: one that many refer to is read and told once.

    Only the pieces are kept in the cache, not the whole.
    """
    pieces = (cache or DeckCache()).pieces
    return _load(Loading(ObservingReader(reader), pieces, legacy), references)


def _load(loading: Loading, references: Sequence[str]) -> LoadedDecks:
    start = Findings(loading.legacy)
    roots = [_entrypoint(loading, reference, start) for reference in references]
    tree = _Tree(loading)
    for root in roots:
        if root is not None:
            loading.want(root)
    tree.read()
    tree.check()
    tree.check_roots(roots)
    tree.connect()
    unreadable = loading.reader.unreadable
    # What follows from a file that cannot be read is not worth saying.
    found = [d for d in [*start, *tree.found()] if d.file not in unreadable]
    diagnostics = tuple(dict.fromkeys([*unreadable.values(), *found]))
    refused = {found.file for found in start if found.severity == "error"}
    decks = tree.usable()
    return LoadedDecks(
        tuple(
            None if root is None or root in refused else decks.get(root)
            for root in roots
        ),
        diagnostics,
    )


def _entrypoint(loading: Loading, reference: str, findings: Findings) -> str | None:
    """The file that a deck starts with."""
    reader = loading.reader
    if reference.startswith("gambit://"):
        return _builtin_entrypoint(reference, findings)
    path = joined("", reference)
    if reader.is_folder(path or "."):
        inside = f"{path.rstrip('/')}/" if path else ""
        path, old = inside + _ENTRYPOINT, inside + _OLD_ENTRYPOINT
        if reader.read_text(path) is None and reader.read_text(old) is not None:
            path = old
    if reader.read_text(path) is None:
        message = f"There is no deck at {path}."
        hint = f"A deck is a folder with a {_ENTRYPOINT}."
        source = Source(path, "")
        findings.add(source.finding("GD001", "error", message, hint=hint))
        return None
    if path.rpartition("/")[2] != _ENTRYPOINT:
        message = f"A deck's file is called {_ENTRYPOINT}; rename this one."
        findings.add(Source(path, "").finding("GD086", "warning", message))
    return path


def _builtin_entrypoint(reference: str, findings: Findings) -> str | None:
    uri, code = modern_deck(reference)
    source = Source(reference, "")
    if code is not None:
        message = f"{reference} is an old spelling; write {uri}."
        findings.add(source.finding(code, "warning", message))
    if is_builtin_deck(uri):
        return uri
    message = f"There is no built-in deck {reference}."
    hint = builtin_deck_hint(uri)
    findings.add(source.finding("GD033", "error", message, hint=hint))
    return None


class _Tree:
    """The decks of a tree, and which of them can be used."""

    def __init__(self, loading: Loading) -> None:
        self._loading = loading
        self._documents: dict[str, Document] = {}
        self._decks: dict[str, Deck] = {}
        self._findings: dict[str, Findings] = {}
        self._root_findings: dict[str, Findings] = {}
        self._later_findings: list[Diagnostic] = []  # About tests, and about roles.
        self._unfit: set[int] = set()  # Uses, by identity: of decks unfit for a role.

    def read(self) -> None:
        """Read every deck that is wanted, and those that they want."""
        pending = self._loading.pending
        while pending:
            path = pending.popleft()
            document = self._loading.document(path)
            if document is None:
                continue  # Its reference has said that it does not exist.
            builder = DeckBuilder(self._loading, document)
            self._documents[path] = document
            self._decks[path] = builder.build()
            self._findings[path] = builder.findings
            self._root_findings[path] = builder.root_findings
            self._later_findings.extend(builder.test_findings)

    def check(self) -> None:
        """Check every reference, now that both its ends are known."""
        for use in self._loading.uses:
            deck = self._decks.get(use.link.path)
            if deck is None or not self._documents[use.link.path].is_readable:
                continue  # It has a larger problem, which has been said.
            compare_schemas(use, deck)
            document = self._documents[use.link.path]
            found = Findings(self._loading.legacy)
            found.extend(role_findings(use, deck, document))
            self._later_findings.extend(found)
            if found.has_errors:
                self._unfit.add(id(use))

    def check_roots(self, roots: Iterable[str | None]) -> None:
        """Say of decks that no other deck runs what is only true of those.

        One with both schemas may well be an action of a deck that is not loaded here.
        """
        called = {use.link.path for use in self._loading.uses}
        for path, deck in self._decks.items():
            is_callable = deck.context_schema and deck.response_schema
            if path in roots and path not in called and not is_callable:
                self._later_findings.extend(self._root_findings[path])

    def connect(self) -> None:
        """Let references lead to decks that can be used."""
        usable = self.usable()
        for use in self._loading.uses:
            if id(use) not in self._unfit and use.link.path in usable:
                use.link.connect(usable[use.link.path])

    def usable(self) -> dict[str, Deck]:
        """The decks that can be used, by their paths."""
        broken = self._broken()
        return {path: deck for path, deck in self._decks.items() if path not in broken}

    def found(self) -> Iterable[Diagnostic]:
        """All that was found, deck by deck."""
        for findings in self._findings.values():
            yield from findings
        yield from self._later_findings

    def _broken(self) -> set[str]:
        """The decks with an error, and those that cannot do without one of them."""
        broken = {path for path, found in self._findings.items() if found.has_errors}
        needs: dict[str, list[Use]] = {}
        for use in self._loading.uses:
            if use.role in ("action", "handler"):
                needs.setdefault(use.link.path, []).append(use)
                if id(use) in self._unfit:
                    broken.add(use.owner)
        waiting = list(broken)
        while waiting:
            for use in needs.get(waiting.pop(), []):
                if use.owner not in broken:
                    broken.add(use.owner)
                    waiting.append(use.owner)
        return broken
