"""Items as the messages of Chat Completions.

What stands side by side in an answer is one message here: its text, its calls and the
reasoning that has to come back with them. The outputs of a message's calls follow it at
once, wherever they stand in the input, because servers insist; a call without an output
and an output without a call are refused by servers, so they are left out and told.
"""

import hashlib
import re
from collections.abc import Sequence

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.chat import chat_from_items
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.dialects.chat_flavours import ChatFlavour
from gambit_actors.providers.dialects.chat_parts import ChatParts
from gambit_actors.providers.dialects.chat_reasoning import unsealed
from gambit_actors.providers.dialects.dialect import Unsent

_JSONObject = dict[str, JSONValue]
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


class _Answer:
    """An assistant's message that is being put together."""

    def __init__(self) -> None:
        self.fields: _JSONObject = {}
        self.calls: list[tuple[int, FunctionCall]] = []
        self.sealed: _JSONObject = {}


class ChatMessages:
    """Renders a conversation.

    Args:
        flavour: of the server.
        unsent: is added to.
    """

    def __init__(self, flavour: ChatFlavour, unsent: list[Unsent]) -> None:
        self.messages: list[JSONValue] = []
        self._flavour = flavour
        self._unsent = unsent
        self._parts = ChatParts(flavour, unsent)
        self._items: Sequence[Item] = ()
        self._answer = _Answer()
        self._used: set[int] = set()

    def render(self, instructions: str | None, items: Sequence[Item]) -> None:
        """Render instructions and items."""
        if instructions is not None:
            self.messages.append({"role": "system", "content": instructions})
        self._items = items
        for place, item in enumerate(items):
            self._render(place, item)
        self._end_answer()

    def _render(self, place: int, item: Item) -> None:
        path = f"input[{place}]"
        match item:
            case Message(role="assistant"):
                self._add_message(place, item)
            case Message():
                self._end_answer()
                said = self._parts.of_message(item, path)
                if said.content != ():
                    self.messages.append(_message(said))
            case FunctionCall():
                self._answer.calls.append((place, item))
            case FunctionCallOutput():
                self._end_answer()
                if place not in self._used:
                    reason = f"there is no call {item.call_id} that it could answer"
                    self._leave_out(path, reason)
            case Reasoning():
                self._add_reasoning(path, item)
            case _:
                reason = f"Chat Completions has nothing like {item.type}"
                self._leave_out(path, reason)

    # The assistant's messages

    def _add_message(self, place: int, item: Message) -> None:
        fields = _message(self._parts.of_message(item, f"input[{place}]"))
        before = self._answer.fields
        if before and not self._answer.calls:
            self._end_answer()
            before = {}
        # Text behind a call joins the text before it: outputs follow at once.
        self._answer.fields = _joined(before, fields) if before else fields

    def _add_reasoning(self, path: str, item: Reasoning) -> None:
        found = unsealed(self._flavour, item.encrypted_content)
        if found is not None:
            if self._answer.sealed:
                self._end_answer()
            self._answer.sealed = found
        elif item.encrypted_content is not None or item.summary:
            self._leave_out(path, "it is the reasoning of a model of another server")

    def _end_answer(self) -> None:
        """Write the message that is put together, and the outputs of its calls."""
        answer, self._answer = self._answer, _Answer()
        fields, sealed = answer.fields, answer.sealed
        calls, outputs = self._answered(answer.calls)
        if not calls and not (fields.get("content") or fields.get("refusal")):
            return  # Nothing was said.
        fields = fields or {"role": "assistant", "content": None}
        if calls:
            extras = sealed.get("calls")
            fields["tool_calls"] = _with_extras(calls, answer.calls, extras)
        if "reasoning_details" in sealed:
            fields["reasoning_details"] = sealed["reasoning_details"]
        if self._flavour.reasoning_back is not None and "text" in sealed:
            fields[self._flavour.reasoning_back] = sealed["text"]
        self.messages.append(fields)
        self.messages += [_message(output) for output in outputs]

    def _answered(
        self, calls: list[tuple[int, FunctionCall]]
    ) -> tuple[dict[int, _JSONObject], list[FunctionCallOutput]]:
        """The calls that have an output, by place, and the outputs, under safe ids."""
        found: dict[int, _JSONObject] = {}
        outputs: list[FunctionCallOutput] = []
        ids: set[str] = set()
        for at, call in calls:
            answered = self._output_of(call.call_id, at)
            if answered is None:
                self._leave_out(
                    f"input[{at}]", f"the call {call.call_id} has no output"
                )
                continue
            where, output = answered
            self._used.add(where)
            call_id = self._safe_id(call.call_id, ids)
            ids.add(call_id)
            name = _NO_NAME.sub("_", call.name)[:_LONGEST_NAME] or "_"
            if name != call.name:
                self._leave_out(f"input[{at}].name", f"{name} is sent for {call.name}")
            renamed = msgspec.structs.replace(call, call_id=call_id, name=name)
            (found[at],) = _message(renamed)["tool_calls"]
            output = self._parts.of_output(output, f"input[{where}]")
            outputs.append(msgspec.structs.replace(output, call_id=call_id))
        return found, outputs

    def _output_of(
        self, call_id: str, place: int
    ) -> tuple[int, FunctionCallOutput] | None:
        for where in range(place + 1, len(self._items)):
            item = self._items[where]
            if (
                isinstance(item, FunctionCallOutput)
                and item.call_id == call_id
                and where not in self._used
            ):
                return where, item
        return None

    def _safe_id(self, call_id: str, taken: set[str]) -> str:
        """The id, or a digest of it where the server would refuse it."""
        longest = self._flavour.longest_call_id
        safe, salt = call_id, 0
        while safe in taken or len(safe) > longest or not _PLAIN_ID.fullmatch(safe):
            salted = f"{call_id}:{salt}".encode("utf-8", "replace")
            safe = hashlib.sha256(salted).hexdigest()[: min(longest, 32)]
            salt += 1
        return safe

    def _leave_out(self, path: str, reason: str) -> None:
        self._unsent.append(Unsent(path, reason))


def _message(item: Message | FunctionCall | FunctionCallOutput) -> _JSONObject:
    (message,) = chat_from_items((item,)).messages
    fields: _JSONObject = to_builtins(message)
    return fields


def _with_extras(
    calls: dict[int, _JSONObject],
    places: Sequence[tuple[int, FunctionCall]],
    extras: JSONValue,
) -> list[JSONValue]:
    """The calls that are sent, each with what its server wants back with it."""
    if not isinstance(extras, list):
        return list(calls.values())
    for (place, _), extra in zip(places, extras, strict=False):
        if place in calls and extra is not None:
            calls[place]["extra_content"] = extra
    return list(calls.values())


def _joined(before: _JSONObject, after: _JSONObject) -> _JSONObject:
    """Two messages of the assistant's as one."""
    fields = before | {key: value for key, value in after.items() if value is not None}
    if before.get("refusal") and after.get("refusal"):
        fields["refusal"] = f"{before['refusal']}\n\n{after['refusal']}"
    first, second = before.get("content"), after.get("content")
    if first and second:
        if isinstance(first, str) and isinstance(second, str):
            fields["content"] = f"{first}\n\n{second}"
        else:
            fields["content"] = [*_parts(first), *_parts(second)]
    return fields


def _parts(content: JSONValue) -> list[JSONValue]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
