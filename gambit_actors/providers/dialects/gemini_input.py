"""Says a conversation in the contents of Gemini.

Contents are turns of the user and of the model, each with parts. What the model said
goes back cut as it was, with its signatures, and the outputs of its calls stand in the
turn right after it, wherever they stand in the input.
"""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    OutputText,
    Part,
    Refusal,
    Text,
)
from gambit_actors.providers.dialects.dialect import Unsent
from gambit_actors.providers.dialects.gemini_stream import MADE_ID, NAME, Signed
from gambit_actors.providers.dialects.sealing import unseal

_Fields = dict[str, JSONValue]
_DATA_URL = re.compile(r"data:([^;,]+)(?:;[^;,]+)*;base64,(.*)", re.DOTALL)
_MEDIA_TYPES = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "mp3": "audio/mp3",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "wav": "audio/wav",
    "xml": "text/xml",
}


class Conversation:
    """The contents of a request, as they are put together.

    Args:
        items: of the request.
        nests_media: whether media may stand inside the output of a function.

    Attributes:
        contents: turns of the user and of the model.
        system: texts that set the conversation up.
        unsent: what found no place.
    """

    def __init__(self, items: Sequence[Item], *, nests_media: bool) -> None:
        self.contents: list[_Fields] = []
        self.system: list[str] = []
        self.unsent: list[Unsent] = []
        self._nests_media = nests_media
        items, self._signatures = _told_apart(items)
        self._places = {
            item.call_id: place
            for place, item in enumerate(items)
            if isinstance(item, FunctionCallOutput)
        }
        self._outputs = {
            item.call_id: item for item in items if isinstance(item, FunctionCallOutput)
        }
        self._calls = {i.call_id for i in items if isinstance(i, FunctionCall)}
        self._to_answer: list[FunctionCall] = []
        for place, item in enumerate(items):
            self._take(item, f"input[{place}]")
        self._answer()

    def _take(self, item: Item, path: str) -> None:
        match item:
            case Message(role="assistant"):
                self._say("model", self._parts(item.content, path))
            case Message(role="user"):
                self._answer()
                self._say("user", self._parts(item.content, path))
            case Message():
                self._take_system(item, path)
            case FunctionCall():
                self._take_call(item, path)
            case FunctionCallOutput(call_id=call_id):
                self._answer()
                if call_id not in self._calls:
                    self._leave_out(path, "there is no call for this output")
            case Reasoning():
                self._take_reasoning(item, path)
            case _:
                self._leave_out(path, f"Gemini takes no item of type {item.type}")

    def _take_system(self, item: Message, path: str) -> None:
        if self.contents:
            reason = "Gemini has one system instruction, which this was moved to"
            self._leave_out(path, reason)
        for part in self._parts(item.content, path):
            if "text" in part:
                self.system.append(part["text"])
            else:
                reason = "a system instruction of Gemini's is text alone"
                self._leave_out(path, reason)

    def _take_call(self, item: FunctionCall, path: str) -> None:
        if item.call_id not in self._outputs:
            self._leave_out(path, "Gemini takes no call without its output")
            return
        call: _Fields = {"name": item.name, "args": self._arguments(item, path)}
        part: _Fields = {"functionCall": _with_id(item.call_id, call)}
        if signature := self._signatures.get(item.call_id):
            part["thoughtSignature"] = signature
        self._to_answer.append(item)
        self._say("model", [part])

    def _arguments(self, item: FunctionCall, path: str) -> _Fields:
        found = _json_object(item.arguments)
        if found is None:
            reason = "no JSON object: sent as the text of one key"
            self._leave_out(f"{path}.arguments", reason)
            return {"arguments": item.arguments}
        return found

    def _take_reasoning(self, item: Reasoning, path: str) -> None:
        signed = _signed(item)
        if signed is None:
            self._leave_out(path, "Gemini takes back no thoughts but its own")
            return
        self._say("model", list(signed.thoughts))
        if signed.text is not None and signed.signature:
            self._sign_text(signed.text, signed.signature, path)

    def _sign_text(self, length: int, signature: str, path: str) -> None:
        """Cut the signed piece of the text before it off, and sign it."""
        turn = self.contents[-1] if self.contents else None
        last = turn["parts"][-1] if turn and turn["role"] == "model" else {}
        text = last.get("text", "") if last.keys() == {"text"} else ""
        if len(text) < length:
            self._leave_out(path, "the text that this signature is for is not there")
            return
        piece = text[len(text) - length :]
        if length and turn:
            turn["parts"].pop()
            if rest := text[: len(text) - length]:
                turn["parts"].append({"text": rest})
        self._say("model", [{"text": piece, "thoughtSignature": signature}])

    def _answer(self) -> None:
        """Say the outputs of the calls just made."""
        calls, self._to_answer = self._to_answer, []
        beside: list[_Fields] = []
        for call in calls:
            output = self._outputs[call.call_id]
            path = f"input[{self._places[call.call_id]}].output"
            parts = self._parts(output.output, path)
            text = "".join(part["text"] for part in parts if "text" in part)
            media = [part for part in parts if "text" not in part]
            said = _json_object(text)
            response: _Fields = {
                "name": call.name,
                "response": {"output": text} if said is None else said,
            }
            if self._nests_media:
                nested = [part for part in media if "inlineData" in part]
                if nested:
                    response["parts"] = nested
                media = [part for part in media if "inlineData" not in part]
            self._say("user", [{"functionResponse": _with_id(call.call_id, response)}])
            beside += media
        self._say("user", beside)

    def _say(self, role: str, parts: list[_Fields]) -> None:
        if not parts:
            return
        if self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"].extend(parts)
        else:
            self.contents.append({"role": role, "parts": list(parts)})

    def _parts(self, content: str | tuple[Part, ...], path: str) -> list[_Fields]:
        if isinstance(content, str):
            return [{"text": content}] if content else []
        found = []
        for place, part in enumerate(content):
            said = self._part(part, f"{path}.content[{place}]")
            if said is not None:
                found.append(said)
        return found

    def _part(self, part: Part, path: str) -> _Fields | None:
        match part:
            case InputText(text=text) | OutputText(text=text) | Text(text=text):
                return {"text": text} if text else None
            case Refusal(refusal=text):
                return {"text": text} if text else None
            case InputImage(image_url=url, detail=detail):
                if detail not in (None, "auto"):
                    reason = "Gemini has one resolution for all images of a request"
                    self._leave_out(f"{path}.detail", reason)
                return self._media(url, None, path)
            case InputVideo(video_url=url):
                return self._media(url, None, path)
            case InputFile(file_data=data, filename=name, file_url=url):
                return self._media(data or url, name, path)
            case _:
                self._leave_out(path, f"Gemini takes no part of type {part.type}")
                return None

    def _media(self, place: str | None, name: str | None, path: str) -> _Fields | None:
        """Media by URL, by data URL, or as the base64 of a file with a name."""
        if place and (found := _DATA_URL.fullmatch(place)):
            return {"inlineData": {"mimeType": found[1], "data": found[2]}}
        ending = (name or place or "").rpartition(".")[2].lower()
        media_type = _MEDIA_TYPES.get(ending)
        if place and "://" in place[:16]:
            known = {"mimeType": media_type} if media_type else {}
            return {"fileData": {"fileUri": place, **known}}
        if place and media_type:
            return {"inlineData": {"mimeType": media_type, "data": place}}
        self._leave_out(path, "there is no data whose media type is known, and no URL")
        return None

    def _leave_out(self, path: str, reason: str) -> None:
        self.unsent.append(Unsent(path, reason))


def _signed(item: Item) -> Signed | None:
    """What has to go back, if we sealed it."""
    if not isinstance(item, Reasoning):
        return None
    sealed = unseal(NAME, item.encrypted_content)
    try:
        return msgspec.convert(sealed, Signed)
    except msgspec.ValidationError:
        return None


def _told_apart(items: Sequence[Item]) -> tuple[list[Item], dict[str, str]]:
    """Items in which each call has an id of its own, and the signatures by these ids.

    Some models number their calls from the start in each answer. The first output with
    an id is that of the first call with it.
    """
    calls, outputs = Counter[str](), Counter[str]()
    apart: list[Item] = []
    signatures: dict[str, str] = {}
    for item in items:
        if isinstance(item, FunctionCall):
            calls[item.call_id] += 1
            own = _own_id(item.call_id, calls[item.call_id])
            item = msgspec.structs.replace(item, call_id=own)  # noqa: PLW2901
        elif isinstance(item, FunctionCallOutput):
            outputs[item.call_id] += 1
            own = _own_id(item.call_id, outputs[item.call_id])
            item = msgspec.structs.replace(item, call_id=own)  # noqa: PLW2901
        elif (signed := _signed(item)) and signed.call_id and signed.signature:
            # It comes before the call that it is for.
            own = _own_id(signed.call_id, calls[signed.call_id] + 1)
            signatures[own] = signed.signature
        apart.append(item)
    return apart, signatures


def _own_id(call_id: str, count: int) -> str:
    return call_id if count == 1 else f"{call_id}_{count}"


def _with_id(call_id: str, fields: _Fields) -> _Fields:
    # An id that was made up here means nothing to the server.
    return fields if call_id.startswith(MADE_ID) else {"id": call_id, **fields}


def _json_object(text: str) -> _Fields | None:
    try:
        found = msgspec.json.decode(text.encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
