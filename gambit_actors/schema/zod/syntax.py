"""The text of one file as a syntax tree, with positions people can use.

tree-sitter counts bytes; everybody else counts characters, from 1. `Source` does that
translation, finds the syntax errors, and decodes literals the way ECMAScript does.
It knows nothing of Zod.
"""

import math
import re

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_typescript.language_typescript())
_MAX_SYNTAX_ERRORS = 10  # One slip of the pen can leave many; the first few tell.
_BIGINT_DIGITS = 100
_SAFE = 2**53

_SIMPLE_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
}
_LINE_ENDS = {"\n", "\r", "\r\n", "\u2028", "\u2029"}


class Source:
    """One parsed file.

    Attributes:
        file: its posix path.
        root: the ``program`` node.
    """

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        # Half a surrogate pair is not text; "?" keeps the count of characters.
        self._data = text.removeprefix("\ufeff").encode("utf-8", "replace")
        self._tree = Parser(_LANGUAGE).parse(self._data)
        self.root: Node = self._tree.root_node

    def position(self, node: Node) -> tuple[int, int]:
        """Line and column of a node, both from 1, the column in characters."""
        start = min(node.start_byte, len(self._data))
        line_start = self._data.rfind(b"\n", 0, start) + 1
        line = self._data.count(b"\n", 0, start) + 1
        return line, len(self._data[line_start:start].decode("utf-8", "replace")) + 1

    def syntax_errors(self) -> list[tuple[Node, str]]:
        """The places that are not TypeScript, in order, each with what is wrong."""
        found: list[tuple[Node, str]] = []
        if not self.root.has_error:
            return found
        waiting = [self.root]
        while waiting and len(found) < _MAX_SYNTAX_ERRORS:
            node = waiting.pop()
            if node.is_missing:
                found.append((node, f"a {node.type!r} is missing here"))
            elif node.is_error:
                found.append((node, f"{shown(text_of(node))} does not belong here"))
            elif node.has_error:
                waiting += reversed(node.children)
        return found or [(self.root, "the text cannot be parsed")]


def text_of(node: Node) -> str:
    """The source text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def shown(text: str) -> str:
    """A piece of source for a message: one line, not long, in quotes."""
    line = " ".join(text.split())
    return f"`{line[:37]}...`" if len(line) > 40 else f"`{line}`"  # noqa: PLR2004


def parts_of(node: Node) -> list[Node]:
    """The named children that mean something: all but comments."""
    return [child for child in node.named_children if child.type != "comment"]


def field(node: Node, name: str) -> Node | None:
    """The child in a field of the grammar, unless it is a comment."""
    for child in node.children_by_field_name(name):
        if child.type != "comment":
            return child
    return None


def has_token(node: Node, token: str) -> bool:
    """Whether a keyword or punctuation is a direct child."""
    return any(child.type == token for child in node.children)


def string_value(node: Node) -> str:
    """The value of a string literal, or of the fixed text in a template."""
    pieces = [
        _unescaped(text_of(child))
        if child.type == "escape_sequence"
        else text_of(child)
        for child in node.named_children
        if child.type in {"string_fragment", "escape_sequence"}
    ]
    return whole_text("".join(pieces))


def piece_value(node: Node) -> str:
    """The value of one fragment or escape sequence."""
    text = text_of(node)
    return _unescaped(text) if node.type == "escape_sequence" else text


def whole_text(text: str) -> str:
    """Join surrogate pairs that were written as two escapes; replace lone halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def number_value(text: str) -> int | float | None:
    """The value of a number literal; None if it is one we do not take."""
    digits = text.replace("_", "").lower()
    try:
        if digits.endswith("n"):
            return int(digits[:-1], 0) if len(digits) <= _BIGINT_DIGITS else None
        if digits[:2] in {"0x", "0o", "0b"}:
            return as_number(float(int(digits, 0)))
        return as_number(float(digits))
    except OverflowError:
        return math.inf
    except ValueError:
        return None


def as_number(value: float) -> int | float:
    """JavaScript has one kind of number; whole ones are ints here."""
    return int(value) if value.is_integer() and abs(value) <= _SAFE else value


def regex_parts(node: Node) -> tuple[str, str]:
    """Pattern and flags of a regular expression literal."""
    pattern, flags = field(node, "pattern"), field(node, "flags")
    source = text_of(pattern) if pattern is not None else ""
    # The slash is escaped for the literal's sake only.
    plain = re.sub(r"\\(.)", lambda m: "/" if m[1] == "/" else m[0], source)
    return plain, text_of(flags) if flags is not None else ""


def _unescaped(escape: str) -> str:
    body = escape[1:]
    if body in _LINE_ENDS:
        return ""
    if body[:1] in {"x", "u"} and len(body) > 1:
        try:
            return chr(int(body[1:].strip("{}"), 16))
        except (ValueError, OverflowError):
            return "\ufffd"
    return _SIMPLE_ESCAPES.get(body, body)
