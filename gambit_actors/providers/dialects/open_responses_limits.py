"""What the standard forbids a request to be; such a request is never sent.

These are the bounds of the published schema that the types leave open. A test holds
them against the schema itself.
"""

import re
from collections.abc import Sized

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import (
    Compaction,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import (
    InputImage,
    OutputText,
    Part,
    UrlCitation,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.tools import AllowedTools, FunctionTool

_TEXT = 10_485_760
_IMAGE = 20_971_520
_FILE = 33_554_432
# Fields of parts, whose names mean the same in every kind of part.
_SIZES = {"text": _TEXT, "refusal": _TEXT, "image_url": _IMAGE, "file_data": _FILE}
_METADATA = (16, 64, 512)
_IDENTIFIER = 64
_LEAST_OUTPUT_TOKENS = 16
_MOST_LOGPROBS = 20
_MOST_ALLOWED_TOOLS = 128
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# Closed lists. Servers that are not exact have more, such as "minimal".
_ONE_OF = {
    "service_tier": ("auto", "default", "flex", "priority"),
    "truncation": ("auto", "disabled"),
    "reasoning.effort": ("none", "low", "medium", "high", "xhigh"),
    "reasoning.summary": ("concise", "detailed", "auto"),
    "text.verbosity": ("low", "medium", "high"),
}
_INCLUDE = ("reasoning.encrypted_content", "message.output_text.logprobs")
_DETAIL = ("low", "high", "auto")
_PHASE = ("commentary", "final_answer")


def checked(request: CreateResponse, *, is_exact: bool) -> CreateResponse:
    """Give a request back if it may be sent.

    Args:
        request: in the form of input.
        is_exact: whether to hold it to the standard's closed lists as well.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    _check_numbers(request)
    _check_metadata(request.metadata)
    _check_tools(request)
    if is_exact:
        _check_lists(request)
    if isinstance(request.input, str):
        _check_size("input", request.input, _TEXT)
    else:
        for index, item in enumerate(request.input or ()):
            _check_item(item, f"input[{index}]", is_exact=is_exact)
    return request


def _check_numbers(request: CreateResponse) -> None:
    tokens, calls = request.max_output_tokens, request.max_tool_calls
    if tokens is not None and tokens < _LEAST_OUTPUT_TOKENS:
        raise BadRequest("max_output_tokens", f"{tokens} is less than 16")
    if calls is not None and calls < 1:
        raise BadRequest("max_tool_calls", f"{calls} is less than 1")
    logprobs = request.top_logprobs
    if logprobs is not None and not 0 <= logprobs <= _MOST_LOGPROBS:
        raise BadRequest("top_logprobs", f"{logprobs} is not between 0 and 20")
    for key in ("safety_identifier", "prompt_cache_key"):
        _check_size(key, getattr(request, key), _IDENTIFIER)


def _check_metadata(metadata: JSONValue) -> None:
    if metadata is None:
        return
    pairs, key_characters, value_characters = _METADATA
    if len(metadata) > pairs:
        raise BadRequest("metadata", f"{len(metadata)} pairs are more than {pairs}")
    for key, value in metadata.items():
        place = f"metadata.{key[:key_characters]}"
        if len(key) > key_characters:
            raise BadRequest(place, "the key has more than 64 characters")
        if not isinstance(value, str):
            raise BadRequest(place, "a value must be text")
        _check_size(place, value, value_characters)


def _check_tools(request: CreateResponse) -> None:
    for index, tool in enumerate(request.tools or ()):
        if isinstance(tool, FunctionTool) and not _NAME.fullmatch(tool.name):
            raise BadRequest(
                f"tools[{index}].name",
                f"{tool.name[:80]!r} is not 1 to 64 letters, digits, _ and -",
            )
    choice = request.tool_choice
    if isinstance(choice, AllowedTools) and not (
        1 <= len(choice.tools) <= _MOST_ALLOWED_TOOLS
    ):
        raise BadRequest(
            "tool_choice.tools", f"{len(choice.tools)} tools are not 1 to 128"
        )


def _check_lists(request: CreateResponse) -> None:
    for path, allowed in _ONE_OF.items():
        value: JSONValue = request
        for step in path.split("."):
            value = getattr(value, step, None)
        _check_one_of(path, value, allowed)
    for index, entry in enumerate(request.include or ()):
        _check_one_of(f"include[{index}]", entry, _INCLUDE)


def _check_item(item: Item, path: str, *, is_exact: bool) -> None:
    match item:
        case Message(content=said):
            _check_content(said, f"{path}.content", is_exact=is_exact)
        case FunctionCallOutput(output=said):
            _check_content(said, f"{path}.output", is_exact=is_exact)
        case Reasoning(summary=parts):
            _check_content(parts, f"{path}.summary", is_exact=is_exact)
        case Compaction(encrypted_content=text):
            _check_size(f"{path}.encrypted_content", text, _TEXT)
        case _:
            pass
    if isinstance(item, Message) and item.role == "assistant" and is_exact:
        _check_one_of(f"{path}.phase", item.phase, _PHASE)


def _check_content(
    content: str | tuple[Part, ...], path: str, *, is_exact: bool
) -> None:
    if isinstance(content, str):
        _check_size(path, content, _TEXT)
        return
    for index, part in enumerate(content):
        place = f"{path}[{index}]"
        for field, most in _SIZES.items():
            _check_size(f"{place}.{field}", getattr(part, field, None), most)
        if isinstance(part, OutputText):
            _check_spans(part, place)
        elif isinstance(part, InputImage) and is_exact:
            _check_one_of(f"{place}.detail", part.detail, _DETAIL)


def _check_spans(part: OutputText, path: str) -> None:
    for index, note in enumerate(part.annotations):
        if isinstance(note, UrlCitation) and min(note.start_index, note.end_index) < 0:
            raise BadRequest(f"{path}.annotations[{index}]", "an index is negative")


def _check_size(path: str, value: Sized | None, most: int) -> None:
    if value is not None and len(value) > most:
        raise BadRequest(path, f"{len(value)} characters are more than {most}")


def _check_one_of(path: str, value: JSONValue, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        shown = str(value)[:40]
        raise BadRequest(path, f"{shown!r} is none of {', '.join(allowed)}")
