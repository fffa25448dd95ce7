"""Items as the turns of a conversation that Anthropic Messages takes.

The API knows two roles that take turns, a system prompt in front, and insists that the
results of all calls of a turn come first in the turn behind it. Items know none of
that: a system message may stand anywhere, and results may come late, or not at all.
"""

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import InputImage, OutputText, Part
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.providers.dialects.anthropic_blocks import NAME
from gambit_actors.providers.dialects.anthropic_parts import (
    Block,
    block_of,
    text_block,
)
from gambit_actors.providers.dialects.call_ids import fitting_id, fitting_name
from gambit_actors.providers.dialects.dialect import Unsent
from gambit_actors.providers.dialects.sealing import unseal

OPENING = "(The conversation begins.)"
"""What stands for the user where nothing of the user's comes first."""

THINKING = ("thinking", "redacted_thinking")
# Where the arguments of a call are no object, the API's own advice is to wrap them.
INVALID = "INVALID_JSON"

_Role: TypeAlias = Literal["user", "assistant", "system"]
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
_OUT_OF_PLACE = {
    "user": ("refusal",),
    "assistant": ("input_image", "input_file"),
    "system": ("input_image", "input_file", "refusal"),
}


class TurnWriter:
    """Writes the turns of one conversation.

    Attributes:
        system: text blocks of the system prompt.
        messages: the turns.
        unsent: what was left out.
    """

    def __init__(self, unsent: list[Unsent]) -> None:
        self.system: list[Block] = []
        self.messages: list[Block] = []
        self.unsent = unsent
        self._results: list[Block] = []
        self._used_ids: set[str] = set()

    def write(self, items: Sequence[Item]) -> None:
        """Write all items."""
        outputs = self._outputs_of_calls(items)
        for index, item in enumerate(items):
            path = f"input[{index}]"
            match item:
                case Message():
                    self._message(item, path)
                case FunctionCall():
                    self._call(item, path, outputs.get(index))
                case FunctionCallOutput():
                    # It was taken when its call was; here the turn of the calls ends.
                    self._give_results()
                case Reasoning():
                    self._reasoning(item, path)
                case _:
                    self._leave_out(path, f"there is no place for a {item.type}")
        self._give_results()
        self._trim()
        self._see_to_the_ends()

    def instruct(self, instructions: str) -> None:
        """Begin the system prompt."""
        block = text_block(instructions)
        self.system += [block] if block is not None else []

    def _leave_out(self, path: str, reason: str) -> None:
        self.unsent.append(Unsent(path, reason))

    def _outputs_of_calls(
        self, items: Sequence[Item]
    ) -> dict[int, tuple[str, FunctionCallOutput]]:
        """Find the output of each call, by the place of the call."""
        waiting: dict[str, int] = {}
        found: dict[int, tuple[str, FunctionCallOutput]] = {}
        for index, item in enumerate(items):
            if isinstance(item, FunctionCall):
                waiting[item.call_id] = index
            elif isinstance(item, FunctionCallOutput):
                path = f"input[{index}]"
                call = waiting.pop(item.call_id, None)
                if call is None:
                    self._leave_out(path, "there is no call that it is the output of")
                else:
                    found[call] = (path, item)
        return found

    # Items

    def _message(self, item: Message, path: str) -> None:
        if item.role in ("system", "developer"):
            if self.messages or self._results:
                self._leave_out(
                    path, "system text can only stand in front: moved there"
                )
            self.system += self._blocks(item.content, f"{path}.content", "system")
            return
        role: _Role = "assistant" if item.role == "assistant" else "user"
        blocks = self._blocks(item.content, f"{path}.content", role)
        if item.phase is not None:
            self._leave_out(f"{path}.phase", "messages have no phase")
        if blocks:
            self._add(role, blocks)

    def _call(
        self,
        item: FunctionCall,
        path: str,
        output: tuple[str, FunctionCallOutput] | None,
    ) -> None:
        if output is None:
            self._leave_out(path, "a call without an output cannot be sent back")
            return
        call_id = fitting_id(item.call_id, _CALL_ID)
        while call_id in self._used_ids:
            call_id += "_"
        self._used_ids.add(call_id)
        use = {
            "type": "tool_use",
            "id": call_id,
            "name": self._name(item.name, path),
            "input": _input(item.arguments),
        }
        self._add("assistant", [use])
        result: Block = {"type": "tool_result", "tool_use_id": call_id}
        place, given = output
        if isinstance(given.output, str):
            content: JSONValue = given.output
        else:
            content = self._blocks(given.output, f"{place}.output", "user")
        if content:
            result["content"] = content
        self._results.append(result)

    def _name(self, name: str, path: str) -> str:
        fitting = fitting_name(name)
        if fitting != name:
            self._leave_out(f"{path}.name", f"not a name; {fitting!r} was sent")
        return fitting

    def _reasoning(self, item: Reasoning, path: str) -> None:
        block = unseal(NAME, item.encrypted_content)
        if not isinstance(block, dict) or block.get("type") not in THINKING:
            self._leave_out(path, "reasoning goes back only to who signed it")
            return
        self._add("assistant", [block])

    def _blocks(
        self, content: str | tuple[Part, ...], path: str, role: _Role
    ) -> list[Block]:
        if isinstance(content, str):
            block = text_block(content)
            return [] if block is None else [block]
        blocks: list[Block] = []
        for index, part in enumerate(content):
            place = f"{path}[{index}]"
            found = block_of(part)
            if part.type in _OUT_OF_PLACE[role]:
                found = f"the {role} cannot say a part of type {part.type}"
            if isinstance(found, str):
                self._leave_out(place, found)
            elif found is not None:
                blocks.append(found)
            self._tell_details(part, place)
        return blocks

    def _tell_details(self, part: Part, path: str) -> None:
        if isinstance(part, OutputText) and part.annotations:
            self._leave_out(f"{path}.annotations", "citations are not sent back")
        if isinstance(part, InputImage) and part.detail not in (None, "auto"):
            self._leave_out(f"{path}.detail", "images have no level of detail")

    # Turns

    def _add(self, role: _Role, blocks: list[Block]) -> None:
        if role == "user" and self._results:
            blocks, self._results = self._results + blocks, []
        self._append(role, blocks)

    def _give_results(self) -> None:
        if self._results:
            self._add("user", [])

    def _append(self, role: _Role, blocks: list[Block]) -> None:
        if self.messages and self.messages[-1]["role"] != role:
            self._trim()
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": list(blocks)})

    def _trim(self) -> None:
        """Drop reasoning that nothing follows in its turn; the API refuses it."""
        if not self.messages:
            return
        content = self.messages[-1]["content"]
        while content and content[-1]["type"] in THINKING:
            content.pop()
            self._leave_out("input", "reasoning with nothing behind it")
        if not content:
            self.messages.pop()

    def _see_to_the_ends(self) -> None:
        """Begin with the user; end a turn that is to be gone on with in no space."""
        if not self.messages or self.messages[0]["role"] != "user":
            self._leave_out(
                "input", f"the user has to begin: sent {OPENING!r} in front"
            )
            opening = {"role": "user", "content": [text_block(OPENING)]}
            self.messages.insert(0, opening)
        last = self.messages[-1]
        if last["role"] == "assistant" and last["content"][-1]["type"] == "text":
            text = last["content"][-1]["text"]
            last["content"][-1] = {"type": "text", "text": text.rstrip()}


def misses_thinking(messages: Sequence[Block]) -> bool:
    """Whether the calls being answered were made without thinking before them.

    The API refuses to think on from there: in a round of calls, the model's first turn
    has to begin with what it thought.
    """
    place = len(messages) - 1
    while place > 0 and _has_results(messages[place]):
        place -= 2
    first = messages[place + 1] if place + 1 < len(messages) else messages[-1]
    if first["role"] != "assistant":
        return False
    return first["content"][0]["type"] not in THINKING


def _has_results(message: Block) -> bool:
    return any(block["type"] == "tool_result" for block in message["content"])


def _input(arguments: str) -> JSONValue:
    """The input of a call, which has to be an object, whatever a model once wrote."""
    if not arguments.strip():
        return {}
    try:
        value = parse_json(arguments.encode("utf-8", "replace"))
    except Mismatch:
        return {INVALID: arguments}
    return value if isinstance(value, dict) else {INVALID: arguments}
