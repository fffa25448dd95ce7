"""Which parts of content a server of Chat Completions takes, and where.

Users may send images, files, sound and videos, as far as the server has them; all
others have text. What has no place is left out and told.
"""

from collections.abc import Iterable

import msgspec

from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.items import FunctionCallOutput, Message
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    OutputText,
    Part,
    Refusal,
    Text,
    UnknownPart,
)
from gambit_actors.providers.dialects.chat_flavours import ChatFlavour
from gambit_actors.providers.dialects.dialect import Unsent


class ChatParts:
    """Leaves out what a server does not take.

    Args:
        flavour: of the server.
        unsent: is added to.
    """

    def __init__(self, flavour: ChatFlavour, unsent: list[Unsent]) -> None:
        self._flavour = flavour
        self._unsent = unsent

    def of_message(self, item: Message, path: str) -> Message:
        """A message with the parts and the role that the server knows."""
        if item.role == "developer" and not self._flavour.has_developer:
            item = msgspec.structs.replace(item, role="system")
        if isinstance(item.content, str):
            return item
        parts = self._taken(item.content, f"{path}.content", role=item.role)
        if item.role == "assistant":
            parts = _in_one(parts, OutputText, "")
        return msgspec.structs.replace(item, content=parts)

    def of_output(self, item: FunctionCallOutput, path: str) -> FunctionCallOutput:
        """An output, of which only text can be told."""
        if isinstance(item.output, str):
            return item
        parts = self._taken(item.output, f"{path}.output", role="tool")
        match _in_one(parts, InputText, "\n"):
            case ():
                return msgspec.structs.replace(item, output="")
            case (InputText(text=text, extra={}),):
                return msgspec.structs.replace(item, output=text)
            case several:
                return msgspec.structs.replace(item, output=several)

    def _taken(
        self, parts: Iterable[Part], path: str, *, role: str
    ) -> tuple[Part, ...]:
        taken: list[Part] = []
        for place, part in enumerate(parts):
            found = self._taken_part(part, role)
            if isinstance(found, str):
                self._unsent.append(Unsent(f"{path}[{place}]", found))
            else:
                taken.append(found)
        return tuple(taken)

    def _taken_part(self, part: Part, role: str) -> Part | str:
        """The part as the server takes it, or the reason why it does not."""
        match part:
            case InputText() | OutputText():
                return part
            case Text(text=text, extra=extra):
                return InputText(text=text, extra=extra)
            case Refusal(refusal=refusal):
                is_known = self._flavour.has_refusals and role == "assistant"
                return part if is_known else OutputText(text=refusal)
            case _ if role != "user":
                return f"a message of the {role} has only text here, no {part.type}"
            case _:
                return self._shown(part)

    def _shown(self, part: Part) -> Part | str:
        """A part that is no text, which users may send."""
        match part:
            case InputImage():
                return part if part.image_url else "an image needs its URL here"
            case InputFile():
                return self._file(part)
            case InputVideo(video_url=url) if self._flavour.has_video:
                video = Extra(video_url={"url": url})
                return UnknownPart(type_name="video_url", extra=video)
            case UnknownPart(type_name="input_audio"):
                return part
            case _:
                return f"{self._flavour.name} takes no {part.type}"

    def _file(self, part: InputFile) -> Part | str:
        takes = self._flavour.files
        if takes == "none":
            return f"{self._flavour.name} takes no files"
        if part.file_url is None:
            return part
        if takes == "data" and part.file_data is None:
            return "a file needs its data here, not its URL"
        data = part.file_data or part.file_url
        return msgspec.structs.replace(part, file_data=data, file_url=None)


def _in_one(
    parts: tuple[Part, ...], kind: type[InputText | OutputText], between: str
) -> tuple[Part, ...]:
    """Plain texts as one, because few servers take several where users do not speak."""
    texts = [
        part.text
        for part in parts
        if isinstance(part, InputText | OutputText) and not part.extra
    ]
    if len(texts) < 2 or len(texts) < len(parts):  # noqa: PLR2004  (two are several)
        return parts
    return (kind(text=between.join(texts)),)
