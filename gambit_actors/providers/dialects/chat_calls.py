"""Tool calls as servers of Chat Completions stream them: which piece is of which call.

The language numbers its calls (``index``) and names each once (``id``). Servers leave
out either or both, start the numbers over, say the id with every piece, cut names in
two, or send arguments as an object. What is certain: an id that was not there before
begins a call, and so does a name where the arguments before it are whole.
"""

import json
import re
from collections.abc import Callable
from heapq import heappop, heappush

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.chat_frames import CallPiece

_MARKS = re.compile(r'[\\"\[\]{}]')
_DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}

_MOST_NAME_CHARACTERS = 1024
"""A longer name is of no tool, and to put it together takes ever longer."""


class Openness:
    """Whether JSON text that comes in pieces is in the middle of something.

    It looks at each character once: a server may send as many pieces as it likes, and
    has us ask after each.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._is_in_string = False
        self._escaped = -1  # Where in the next piece a character is escaped.

    @property
    def is_open(self) -> bool:
        """Whether something was begun that is not over."""
        return self._is_in_string or self._depth > 0

    def feed(self, piece: str) -> None:
        """Take the next piece."""
        for mark in _MARKS.finditer(piece):
            place, sign = mark.start(), mark[0]
            if place == self._escaped:
                continue
            if sign == '"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string:
                self._depth += _DEEPER.get(sign, 0)
            elif sign == "\\":
                self._escaped = place + 1
        if piece:
            self._escaped = 0 if self._escaped == len(piece) else -1


class Call:
    """A call as far as it has come; a key of the writer's by itself.

    Attributes:
        number: its place among the calls of the answer.
        index: the server's number for it, if it has one.
        id: the server's id for it; empty if there is none.
        name: of the function, as far as it is known.
        pieces: of the arguments.
        is_started: whether the writer knows of it.
        extra_content: what the server wants back with the call.
    """

    def __init__(self, number: int, index: int | None) -> None:
        self.number = number
        self.index = index
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.is_started = False
        self.extra_content: JSONValue = None
        self._openness = Openness()
        self._pieces_looked_at = 0

    @property
    def arguments(self) -> str:
        """The text of the arguments."""
        return "".join(self.pieces)

    @property
    def is_cut_short(self) -> bool:
        """Whether the arguments are the beginning of a JSON document, no whole one."""
        for piece in self.pieces[self._pieces_looked_at :]:
            self._openness.feed(piece)
        self._pieces_looked_at = len(self.pieces)
        return self._openness.is_open

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is known of it that would make it a call."""
        return not (self.id or self.name or self.pieces)


class Calls:
    """The calls of an answer, in the order in which they began.

    Args:
        note: is told what the server did against its dialect.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self.all: list[Call] = []
        self._note = note
        self._by_index: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}
        self._waiting: list[int] = []

    def startable(self, call: Call) -> list[Call]:
        """Give the calls up to this one that have a name and were not yet given."""
        found = []
        while self._waiting and self._waiting[0] <= call.number:
            found.append(self.all[heappop(self._waiting)])
        return found

    def take(self, piece: CallPiece, place: int | None) -> tuple[Call, str]:
        """Take a piece of a call, give the call and what its arguments grew by.

        Args:
            piece: what the server sent.
            place: among the calls of the chunk; None if it is the only one.
        """
        call = self._find(piece, place)
        if piece.id and not call.id:
            call.id = piece.id
            self._by_id.setdefault(piece.id, call)
        if piece.extra_content is not None:
            call.extra_content = piece.extra_content
        function = piece.function
        if function is None:
            return call, ""
        if function.name:
            self._name(call, function.name)
        text = function.arguments
        if text is not None and not isinstance(text, str):
            text = self._as_text(call, text)
        if text:
            call.pieces.append(text)
        return call, text or ""

    def _find(self, piece: CallPiece, place: int | None) -> Call:
        index = place if piece.index is None else piece.index
        if index is not None:
            at = self._by_index.get(index)
        else:
            at = self.all[-1] if self.all else None
        if piece.id:
            return self._find_by_id(piece.id, piece, index, at)
        if at is None:
            return self._new(index)
        name = piece.function.name if piece.function is not None else None
        if name and at.pieces and not at.is_cut_short:
            arguments = piece.function.arguments if piece.function else None
            if name != at.name or arguments:
                self._note("two calls have one index and no ids")
                return self._new(index)
        return at

    def _find_by_id(
        self, id: str, piece: CallPiece, index: int | None, at: Call | None
    ) -> Call:
        known = self._by_id.get(id)
        if known is not None:
            if piece.index is None or piece.index == known.index:
                return known
            same = self._by_index.get(piece.index)
            if same is not None and same.id == id:
                return same
            if piece.function is None or not piece.function.name:
                return known  # A number that counts pieces.
            self._note(f"two calls have the id {id}")
        elif at is not None and not at.id:
            return at  # Its id comes late.
        return self._new(index)

    def _new(self, index: int | None) -> Call:
        call = Call(len(self.all), index)
        self.all.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _name(self, call: Call, name: str) -> None:
        if name == call.name:
            return  # Some say it with every piece.
        if call.is_started:
            self._note(f"a call of {call.name} is named {name} after it began")
            return
        if len(call.name) + len(name) > _MOST_NAME_CHARACTERS:
            self._note("the name of a call is too long: the rest is left out")
            return
        if not call.name:
            heappush(self._waiting, call.number)
        call.name += name

    def _as_text(self, call: Call, arguments: JSONValue) -> str:
        if call.pieces:
            self._note(f"a call of {call.name} has arguments as text and as a value")
            return ""
        try:
            return json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
        except (ValueError, RecursionError):
            self._note(f"a call of {call.name} has arguments that cannot be written")
            return "{"  # Which is no JSON, so that the call cannot pass for whole.
