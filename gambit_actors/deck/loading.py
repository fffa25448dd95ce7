"""What is shared while one tree of decks is loaded: files, schemas, links.

`Loading` looks things up for the readers of the parts of a deck and places what is
wrong with them where the author wrote them. It keeps a list of the decks that are
still to be read, so that a tree of any depth, with any circles, is one loop.
"""

from collections import deque

import msgspec

from gambit_actors.deck.builtin import DECK_SCHEME, DECKS, SNIPPET_SCHEME, SNIPPETS
from gambit_actors.deck.documents import Document
from gambit_actors.deck.findings import Findings, LegacyPolicy
from gambit_actors.deck.model import Link, Role
from gambit_actors.deck.observing import ObservingReader
from gambit_actors.deck.pieces import Pieces
from gambit_actors.deck.tables import Table
from gambit_actors.errors import SchemaError
from gambit_actors.schema.diagnostics import Diagnostic, Edit
from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.schemas import LoadedSchema


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """That one deck refers to another.

    Attributes:
        owner: the path of the deck with the reference.
        table: where the reference is written.
        schemas: the schemas that are written beside it, which must match the deck's.
    """

    link: Link
    role: Role
    owner: str
    table: Table
    schemas: dict[str, LoadedSchema] = {}


class Loading:
    """One loading of one tree."""

    def __init__(
        self, reader: ObservingReader, pieces: Pieces, legacy: LegacyPolicy
    ) -> None:
        self.reader = reader
        self.legacy = legacy
        self.uses: list[Use] = []
        self.pending: deque[str] = deque()
        self._pieces = pieces
        self._seen: set[str] = set()

    def document(self, file: str) -> Document | None:
        """The document of a file, or of a built-in deck or snippet."""
        if file.startswith("gambit://"):
            text = _builtin_text(file)
        else:
            text = self.reader.read_text(file)
        return None if text is None else self._pieces.document(file, text)

    def problems(self, document: Document) -> list[Diagnostic]:
        """What keeps a document from being read."""
        unreadable = self.reader.unreadable.get(document.source.file)
        return [*document.problems, *([unreadable] if unreadable else [])]

    def want(self, path: str) -> None:
        """Put a deck on the list of those to be read, once."""
        if path not in self._seen:
            self._seen.add(path)
            self.pending.append(path)

    def use(self, use: Use) -> None:
        """Note a reference, and read what it refers to."""
        self.uses.append(use)
        self.want(use.link.path)

    def schema(self, table: Table, key: str) -> LoadedSchema | None:
        """Load the schema that a key refers to; None if it has none that is good."""
        if key in table and not isinstance(table.values[key], str):
            table.wrong_type(key, "the path of a schema, as a string")
            return None
        reference = table.text(key)
        if reference is None:
            return None
        file = table.document.source.file
        known = set(self.reader.unreadable)
        loaded = self.schema_from(reference, base=file)
        for found in loaded.diagnostics:
            # About the reference and not about a file: say it where it stands.
            is_here = found.file == file
            table.findings.add(_placed(found, table, key, loaded) if is_here else found)
        # A file with bytes that are not text may still make a schema, of a sort.
        spoilt = (self.reader.unreadable.keys() - known) | {loaded.source}
        unreadable = [d for f, d in self.reader.unreadable.items() if f in spoilt]
        table.findings.extend(unreadable)
        return None if loaded.schema is None or unreadable else loaded

    def schema_from(self, reference: str, *, base: str) -> LoadedSchema:
        """Load a schema that a file refers to."""
        return self._pieces.schemas.load(
            reference,
            base=base,
            read_file=self.reader.read_text,
            describe_type=self.reader.describe_type,
        )

    def module_schemas(self, file: str, findings: Findings) -> dict[str, LoadedSchema]:
        """What a Python module says it takes and gives, by the keys of a deck.

        Args:
            file: the module.
            findings: takes what there is to say about its schemas.

        Raises:
            LookupError: the module cannot be imported, or is not what it should be.
        """
        described = self._pieces.module(file, self.reader)
        said = {
            "contextSchema": described.context_schema,
            "responseSchema": described.response_schema,
        }
        return {
            key: self._module_schema(file, key, schema, findings)
            for key, schema in said.items()
            if schema is not None
        }

    def _module_schema(
        self, file: str, key: str, schema: str | Schema, findings: Findings
    ) -> LoadedSchema:
        if isinstance(schema, str):
            loaded = self.schema_from(schema, base=file)
            reasons = [d.message for d in loaded.diagnostics if d.severity == "error"]
            if not reasons:
                findings.extend(loaded.diagnostics)
        else:
            loaded = LoadedSchema(schema=schema, source=file)
            reasons = _faults(loaded)
        if reasons:
            msg = f"its {key} is not a schema: {reasons[0].rstrip('.')}"
            raise LookupError(msg)
        return loaded


def _faults(loaded: LoadedSchema) -> list[str]:
    try:
        _ = loaded.validator
    except SchemaError as problem:
        return [str(problem)]
    return []


def _builtin_text(uri: str) -> str | None:
    if uri.startswith(SNIPPET_SCHEME):
        return SNIPPETS.get(uri.removeprefix(SNIPPET_SCHEME))
    return DECKS.get(uri.removeprefix(DECK_SCHEME))


def _placed(
    found: Diagnostic, table: Table, key: str, loaded: LoadedSchema
) -> Diagnostic:
    at = table.document.place((*table.path, key))
    line, column = table.document.source.position(at.start)
    edit = Edit(start=at.start, end=at.end, text=f'"{loaded.source}"')
    edits = (edit,) if found.code == "GS043" else ()  # An old spelling.
    return msgspec.structs.replace(found, line=line, column=column, edits=edits)
