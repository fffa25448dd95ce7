"""Where the keys and values of a TOML document are written.

tomli says what a document means and not where. This module says where and not what: it
follows a text that tomli has read already, and so need not know what is forbidden. Text
that it cannot follow ends the search: what stands before is known, the rest is not.
Nothing is raised, each character is looked at a bounded number of times, and nesting
costs memory and no stack.
"""

import re
from typing import TypeAlias

import msgspec
import tomli

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys of tables and, from 0, indexes of arrays."""

# Three quotes are never an empty string and one more. A long string without an end has
# to end the search: going on after two of its quotes, the rest could be looked at again
# and again.
_BASIC = r'"(?!"")[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"'
_LITERAL = r"'(?!'')[^'\n]*'"

# "One or two quotes are allowed next to the closing delimiter": 3 to 5 end a string.
_LONG_BASIC = r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3,5}'
_LONG_LITERAL = r"'''.*?'{3,5}"

# Numbers, words, dates and times; a date and its time may have a space between them.
_BARE = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} (?=[0-9]{2}:))?[0-9A-Za-z+\-_.:]+"

_SCALAR = re.compile(
    f"{_BASIC}|{_LITERAL}|{_LONG_BASIC}|{_LONG_LITERAL}|{_BARE}", re.DOTALL
)
_KEY = re.compile(
    rf"[ \t]*(?P<key>[A-Za-z0-9_-]+|{_BASIC}|{_LITERAL})"
    r"[ \t]*(?P<mark>[.=]|\]\]?|)"
)
_HEADER = re.compile(r"\[\[?")

# In a valid text a comma only stands where space may, so it is passed over as space.
_GAP = re.compile(r"[ \t\r\n,]*(?:#[^\n]*[ \t\r\n,]*)*")


class Span(msgspec.Struct, frozen=True):
    """A stretch of text: offsets in characters from 0, the end not included."""

    start: int
    end: int


class TomlPlaces:
    """The places of one document.

    Args:
        text: what tomli has read without complaint; of any other text, less is known.
    """

    def __init__(self, text: str) -> None:
        self._root = _Scanner(text).run()

    def key(self, path: Path) -> Span | None:
        """Find where the last key of a path is first written.

        An element made by a `[[x]]` header has the `x` of that header for its key, and
        an element of an array in brackets has its value.
        """
        node = self._node(path)
        return None if node is None else node.key or node.value

    def value(self, path: Path) -> Span | None:
        """Find where a value is written, with its quotes, brackets or braces.

        A table that has a header is the header, brackets and all; an array of such
        tables is the first of their headers. A table that is only named on the way to
        others, in dotted keys or in the headers of its sub-tables, is its own key where
        it is first written.
        """
        node = self._node(path)
        return None if node is None else node.place

    def uses(self, keys: tuple[str, ...]) -> list[Span]:
        """Find every place where a key is written, whatever the array index.

        In the order of the document, with the quotes where a key has them.
        """
        names = self._root.names
        for key in keys:
            if key not in names.inner:
                return []
            names = names.inner[key]
        return list(names.spans)

    def nearest(self, path: Path) -> Span:
        """Find a value, or else the innermost known table or array on the way to it."""
        node, found = self._root, Span(0, 0)
        for step in path:
            if step not in node.inner:
                break
            node = node.inner[step]
            found = node.place or found
        return found

    def _node(self, path: Path) -> "_Node | None":
        node = self._root
        for step in path:
            if step not in node.inner:
                return None
            node = node.inner[step]
        return node


class _Names:
    """One key with all its uses, and the keys below it; arrays make no difference."""

    __slots__ = ("inner", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.inner: dict[str, _Names] = {}


class _Node:
    """One value with its places, and the values inside it.

    A tree, because the paths of a deep document written out would not be linear.
    """

    __slots__ = ("inner", "key", "names", "size", "value")

    def __init__(self, names: _Names) -> None:
        self.names = names
        self.key: Span | None = None
        self.value: Span | None = None
        self.inner: dict[str | int, _Node] = {}
        self.size = 0
        """How many elements it has, if it is an array."""

    @property
    def place(self) -> Span | None:
        return self.value or self.key

    def entry(self, name: str, written: Span) -> "_Node":
        """Name an entry: of this table or, if it is an array, of its last element."""
        table = self.inner[self.size - 1] if self.size else self
        names = table.names.inner.get(name)
        if names is None:
            names = table.names.inner[name] = _Names()
        names.spans.append(written)
        node = table.inner.get(name)
        if node is None:
            node = table.inner[name] = _Node(names)
            node.key = written
        return node

    def append(self) -> "_Node":
        """Begin another element of an array."""
        node = self.inner[self.size] = _Node(self.names)
        self.size += 1
        return node


class _Scanner:
    """A walk through one text, from its start to its end or to what is not TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._root = _Node(_Names())

    def run(self) -> _Node:
        table: _Node | None = self._root
        while table is not None:
            self._skip_gap()
            if header := _HEADER.match(self._text, self._at):
                table = self._header(header)
            elif not self._entry(table):
                break
        return self._root

    def _skip_gap(self) -> None:
        if gap := _GAP.match(self._text, self._at):
            self._at = gap.end()

    def _header(self, opening: re.Match[str]) -> _Node | None:
        """Read a header; the table it opens."""
        self._at = opening.end()
        is_element = opening[0] == "[["
        named = self._key(self._root, "]]" if is_element else "]")
        if named is None:
            return None
        span = Span(opening.start(), self._at)
        if not is_element:
            named.value = span
            return named
        node = named.append()
        node.key, node.value = named.names.spans[-1], span
        named.value = named.value or span
        return node

    def _entry(self, table: _Node) -> bool:
        """Read a key and its value, down to the innermost; whether it could be done."""
        node = self._key(table, "=")
        # The arrays and inline tables that are not closed yet, and where they start.
        open_nodes: list[tuple[_Node, int]] = []
        while node is not None:
            self._skip_gap()
            start = self._at
            if self._text.startswith(("[", "{"), start):
                self._at += 1
                open_nodes.append((node, start))
            elif scalar := _SCALAR.match(self._text, start):
                self._at = scalar.end()
                node.value = Span(start, self._at)
            else:
                return False
            self._close(open_nodes)
            if not open_nodes:
                return True
            node = self._next(*open_nodes[-1])
        return False

    def _close(self, open_nodes: list[tuple[_Node, int]]) -> None:
        """Pass over the brackets and braces that close here."""
        self._skip_gap()
        while open_nodes and self._text.startswith(("]", "}"), self._at):
            node, start = open_nodes.pop()
            self._at += 1
            node.value = Span(start, self._at)
            self._skip_gap()

    def _next(self, node: _Node, start: int) -> _Node | None:
        """Begin the next element or entry of what starts at an offset."""
        return node.append() if self._text[start] == "[" else self._key(node, "=")

    def _key(self, table: _Node, ending: str) -> _Node | None:
        """Read a dotted key and the mark that ends it; what it names, from a table."""
        while part := _KEY.match(self._text, self._at):
            name = _name_from_token(part["key"])
            if name is None:
                return None
            self._at = part.end()
            table = table.entry(name, Span(*part.span("key")))
            if part["mark"] != ".":
                return table if part["mark"] == ending else None
        return None


def _name_from_token(token: str) -> str | None:
    """The key that a token stands for, as tomli gives it."""
    if token[0] not in "\"'":
        return token
    if token[0] == "'" or "\\" not in token:
        return token[1:-1]
    try:
        return str(tomli.loads(f"x = {token}")["x"])
    except tomli.TOMLDecodeError:
        return None
