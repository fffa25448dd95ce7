"""Requests of ours as a server of Open Responses takes them.

Items come from logs, from other servers and from programs, in forms that are fine to
keep and would be refused as input. Here they are given the form of the standard's
input; what has none is left out and told.
"""

import re

import msgspec

from gambit_actors.openresponses.items import (
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemReference,
    Message,
    Reasoning,
    UnknownItem,
)
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    OutputText,
    Part,
    Refusal,
    SummaryText,
    Text,
    UnknownAnnotation,
    UnknownPart,
)
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonObjectFormat,
    TextConfig,
    UnknownFormat,
)
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionTool,
    Tool,
    ToolChoice,
    UnknownChoice,
    UnknownTool,
)
from gambit_actors.providers.dialects.call_ids import fitting_id, fitting_name
from gambit_actors.providers.dialects.dialect import Unsent
from gambit_actors.providers.dialects.open_responses_profiles import (
    OpenResponsesProfile,
)
from gambit_actors.providers.dialects.sealing import is_sealed

_CALL_ID = re.compile(r".{1,64}", re.DOTALL)
_STATUSES = ("in_progress", "completed", "incomplete")

_SAID = (OutputText, Refusal)
_SET_UP = (InputText,)
_ASKED = (InputText, InputImage, InputFile)
_GIVEN_BACK = (InputText, InputImage, InputFile, InputVideo)


class RequestWriter:
    """Gives one request the form of input.

    Args:
        profile: what the server takes.
        is_stateless: whether the server remembers nothing of what is referred to.

    Attributes:
        unsent: what was left out so far.
    """

    def __init__(self, profile: OpenResponsesProfile, *, is_stateless: bool) -> None:
        self.unsent: list[Unsent] = []
        self._profile = profile
        self._is_stateless = is_stateless

    def written(self, request: CreateResponse) -> CreateResponse:
        """The request as it may be sent."""
        return msgspec.structs.replace(
            request,
            input=self._input(request.input),
            tools=self._tools(request.tools),
            tool_choice=self._tool_choice(request.tool_choice),
            text=self._text(request.text),
        )

    def _leave_out(self, path: str, reason: str) -> None:
        self.unsent.append(Unsent(path, reason))

    def _takes(self, type_name: str) -> bool:
        """Whether a thing of a type that we do not know can be sent.

        The standard lets implementors add types under a name of theirs and a colon.
        """
        return not self._profile.is_exact or ":" in type_name

    # Items

    def _input(
        self, given: str | tuple[Item, ...] | None
    ) -> str | tuple[Item, ...] | None:
        if given is None or isinstance(given, str):
            return given
        written = (
            self._item(item, f"input[{index}]") for index, item in enumerate(given)
        )
        return tuple(item for item in written if item is not None)

    def _item(self, item: Item, path: str) -> Item | None:
        match item:
            case Message():
                return self._message(item, path)
            case FunctionCall():
                return msgspec.structs.replace(
                    item,
                    id=None,
                    call_id=fitting_id(item.call_id, _CALL_ID),
                    name=self._name(item.name, path),
                    status=item.status if item.status in _STATUSES else None,
                )
            case FunctionCallOutput():
                return self._output(item, path)
            case Reasoning():
                return self._reasoning(item, path)
            case Compaction():
                return msgspec.structs.replace(item, id=None, created_by=None)
            case ItemReference() | UnknownItem():
                return self._as_it_is(item, path)

    def _as_it_is(
        self, item: ItemReference | UnknownItem, path: str
    ) -> ItemReference | UnknownItem | None:
        if isinstance(item, UnknownItem):
            if self._takes(item.type_name):
                return item
            self._leave_out(path, f"items of type {item.type_name} are not known")
            return None
        if not self._is_stateless:
            return item
        self._leave_out(path, "nothing is kept that could be referred to")
        return None

    def _message(self, item: Message, path: str) -> Message | None:
        content = item.content
        if not isinstance(content, str):
            taken = {"assistant": _SAID, "user": _ASKED}.get(item.role, _SET_UP)
            content = self._parts(content, taken, f"{path}.content")
            if item.content and not content:
                return None
        return msgspec.structs.replace(item, id=None, content=content)

    def _output(self, item: FunctionCallOutput, path: str) -> FunctionCallOutput:
        output = item.output
        if not isinstance(output, str):
            output = self._parts(output, _GIVEN_BACK, f"{path}.output")
        return msgspec.structs.replace(
            item,
            id=None,
            call_id=fitting_id(item.call_id, _CALL_ID),
            output=output,
            status=item.status if item.status in _STATUSES else None,
        )

    def _reasoning(self, item: Reasoning, path: str) -> Reasoning | None:
        sealed = item.encrypted_content
        if sealed is not None and is_sealed(sealed):
            self._leave_out(path, "reasoning goes back to who had it, and to no other")
            return None
        summary = tuple(p for p in item.summary if isinstance(p, SummaryText))
        # OpenAI looks for what has no sealed form among what it has kept.
        if sealed is None and (self._profile.seals_reasoning or not summary):
            self._leave_out(path, "reasoning that is not sealed cannot be sent back")
            return None
        return msgspec.structs.replace(
            item, id=None, content=None, status=None, summary=summary
        )

    def _name(self, name: str, path: str) -> str:
        """The name of a call; a model may have made up one that no tool can have."""
        fitting = fitting_name(name)
        if fitting != name:
            self._leave_out(f"{path}.name", f"not a name; {fitting!r} was sent")
        return fitting

    # Parts

    def _parts(
        self, parts: tuple[Part, ...], taken: tuple[type[Part], ...], path: str
    ) -> tuple[Part, ...]:
        written: list[Part] = []
        for index, part in enumerate(parts):
            place = f"{path}[{index}]"
            fitting = _reworded(part, taken)
            if isinstance(fitting, OutputText):
                fitting = self._annotated(fitting, place)
            if isinstance(fitting, taken) or (
                isinstance(fitting, UnknownPart) and self._takes(fitting.type_name)
            ):
                written.append(fitting)
            else:
                self._leave_out(place, f"a part of type {part.type} has no place here")
        return tuple(written)

    def _annotated(self, part: OutputText, path: str) -> OutputText:
        """Text the model wrote, without what is told of its making."""
        kept = tuple(
            note
            for note in part.annotations
            if not isinstance(note, UnknownAnnotation) or self._takes(note.type_name)
        )
        if len(kept) < len(part.annotations):
            self._leave_out(f"{path}.annotations", "of a type that is not known")
        return msgspec.structs.replace(part, annotations=kept, logprobs=None)

    # Tools and formats

    def _tools(self, tools: tuple[Tool, ...] | None) -> tuple[Tool, ...] | None:
        if tools is None:
            return None
        written: list[Tool] = []
        for index, tool in enumerate(tools):
            if isinstance(tool, UnknownTool) and not self._takes(tool.type_name):
                self._leave_out(
                    f"tools[{index}]", f"tools of type {tool.type_name} are not known"
                )
                continue
            if isinstance(tool, FunctionTool) and tool.strict is None:
                strict = self._profile.tools_are_strict
                written.append(msgspec.structs.replace(tool, strict=strict))
            else:
                written.append(tool)
        return tuple(written)

    def _tool_choice(self, choice: ToolChoice | None) -> ToolChoice | None:
        match choice:
            case UnknownChoice(type_name=name) if not self._takes(name):
                self._leave_out("tool_choice", f"a choice of type {name} is not known")
                return None
            case AllowedTools(tools=tools):
                known = tuple(
                    tool
                    for tool in tools
                    if not isinstance(tool, UnknownChoice)
                    or self._takes(tool.type_name)
                )
                if len(known) < len(tools):
                    self._leave_out("tool_choice.tools", "of a type that is not known")
                return msgspec.structs.replace(choice, tools=known)
            case _:
                return choice

    def _text(self, text: TextConfig | None) -> TextConfig | None:
        if text is None or not self._profile.is_exact:
            return text
        if isinstance(text.format, JsonObjectFormat | UnknownFormat):
            self._leave_out(
                "text.format", f"the standard has no format {text.format.type}"
            )
            return msgspec.structs.replace(text, format=None)
        return text


def _reworded(part: Part, taken: tuple[type[Part], ...]) -> Part:
    """Text under the name that it has in this place."""
    if isinstance(part, taken):
        return part
    match part:
        case InputText(text=text) | OutputText(text=text) | Text(text=text):
            return OutputText(text=text) if taken is _SAID else InputText(text=text)
        case _:
            return part
