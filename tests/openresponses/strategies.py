"""Hypothesis strategies for what crosses the wire: values, parts, items, responses.

Everything here is legal by the standard, which allows unknown keys on any object and
unknown types of parts, items and tools. What is generated is in output form: items
have an id, and a status where the standard gives them one.
"""

import functools
import string
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from gambit_actors.openresponses.base import NO_EXTRA, Extra, JSONValue, Open
from gambit_actors.openresponses.items import (
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
)
from gambit_actors.openresponses.parts import (
    Annotation,
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    OutputText,
    Part,
    ReasoningText,
    Refusal,
    SummaryText,
    Text,
    UnknownAnnotation,
    UnknownPart,
    UrlCitation,
)
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    InputTokensDetails,
    OutputTokensDetails,
    Response,
    ResponseError,
    Usage,
)
from gambit_actors.openresponses.tools import EchoedTool, UnknownTool

_StructT = TypeVar("_StructT", bound=Open)

_WORD = string.ascii_letters + string.digits + "_-"
_HOSTILE_KEYS = ("$extra", "$unknown", "$type")
_ODD_JSON_TEXTS = (
    "",
    "{}",
    ' {"a" :\t1 ,\r\n "b": [ ] } ',
    '{"a":"\\u00e9\\ud83d\\ude00","a":1.50,"n":1e2}',
    '{"cut": "of',
    '"\\u2028\u2028\\/"',
    "not JSON at all",
)

# --- values ----------------------------------------------------------------


@functools.cache
def texts() -> st.SearchStrategy[str]:
    """Text as JSON can carry it: anything but half a surrogate pair."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def words(*, max_size: int = 12) -> st.SearchStrategy[str]:
    """Names and ids: ASCII, never empty."""
    return st.text(_WORD, min_size=1, max_size=max_size)


@functools.cache
def json_texts() -> st.SearchStrategy[str]:
    """What a model writes as arguments: JSON in any spelling, or nearly JSON."""
    return st.one_of(st.sampled_from(_ODD_JSON_TEXTS), texts())


@functools.cache
def json_values() -> st.SearchStrategy[JSONValue]:
    """Any JSON value; numbers beyond 64 bits and hostile keys included."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        texts(),
    )
    keys = st.one_of(texts(), st.sampled_from(_HOSTILE_KEYS))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)
        ),
        max_leaves=5,
    )


@functools.cache
def extras() -> st.SearchStrategy[Extra]:
    """Keys that no struct of ours has; mostly none, as on the real wire."""
    names = st.one_of(words().map("acme:{}".format), st.sampled_from(_HOSTILE_KEYS))
    some = st.dictionaries(names, json_values(), min_size=1, max_size=3).map(Extra)
    return st.one_of(st.just(NO_EXTRA), st.just(NO_EXTRA), some)


def _struct(
    kind: type[_StructT], **fields: st.SearchStrategy[object]
) -> st.SearchStrategy[_StructT]:
    return st.builds(kind, extra=extras(), **fields)


def _maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), values)


def _tuples(
    values: st.SearchStrategy[object], *, max_size: int = 3
) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, max_size=max_size).map(tuple)


def _unknown_extras(**known: st.SearchStrategy[object]) -> st.SearchStrategy[Extra]:
    return st.tuples(extras(), st.fixed_dictionaries(known)).map(
        lambda pair: Extra(pair[0] | pair[1])
    )


@functools.cache
def _vendor_types() -> st.SearchStrategy[str]:
    return st.one_of(words().map("acme:{}".format), st.just("$unknown"))


# --- parts -----------------------------------------------------------------


@functools.cache
def annotations() -> st.SearchStrategy[Annotation]:
    """Annotations of a text part."""
    spans = st.integers(0, 2**40)
    citation = _struct(
        UrlCitation, url=texts(), title=texts(), start_index=spans, end_index=spans
    )
    unknown = st.builds(
        UnknownAnnotation, type_name=_vendor_types(), extra=_unknown_extras()
    )
    return st.one_of(citation, unknown)


@functools.cache
def output_texts() -> st.SearchStrategy[OutputText]:
    """Text parts of a model's message."""
    return _struct(
        OutputText,
        text=texts(),
        annotations=_tuples(annotations(), max_size=2),
        logprobs=_maybe(_tuples(json_values(), max_size=2)),
    )


@functools.cache
def unknown_parts() -> st.SearchStrategy[UnknownPart]:
    """Parts of a type that nobody told us about."""
    return st.builds(UnknownPart, type_name=_vendor_types(), extra=_unknown_extras())


@functools.cache
def _message_parts() -> st.SearchStrategy[Part]:
    return st.one_of(output_texts(), _struct(Refusal, refusal=texts()), unknown_parts())


@functools.cache
def _input_parts() -> st.SearchStrategy[Part]:
    return st.one_of(
        _struct(InputText, text=texts()),
        _struct(InputImage, image_url=_maybe(texts()), detail=_maybe(words())),
        _struct(
            InputFile,
            filename=_maybe(texts()),
            file_data=_maybe(texts()),
            file_url=_maybe(texts()),
        ),
        _struct(InputVideo, video_url=texts()),
        unknown_parts(),
    )


@functools.cache
def parts() -> st.SearchStrategy[Part]:
    """Content parts of every type, unknown ones included."""
    return st.one_of(
        _message_parts(),
        _input_parts(),
        _struct(Text, text=texts()),
        _struct(SummaryText, text=texts()),
        _struct(ReasoningText, text=texts()),
    )


# --- items -----------------------------------------------------------------


def _ids(prefix: str) -> st.SearchStrategy[str]:
    return words().map(f"{prefix}_{{}}".format)


def messages(status: str = "completed") -> st.SearchStrategy[Message]:
    """Messages the model wrote."""
    return _struct(
        Message,
        id=_ids("msg"),
        status=st.just(status),
        role=st.just("assistant"),
        content=_tuples(_message_parts()),
        phase=st.sampled_from([None, "commentary", "final_answer"]),
    )


def function_calls(status: str = "completed") -> st.SearchStrategy[FunctionCall]:
    """Calls, with arguments in any spelling."""
    return _struct(
        FunctionCall,
        id=_ids("fc"),
        status=st.just(status),
        call_id=words(max_size=64),
        name=words(max_size=64),
        arguments=json_texts(),
    )


def function_call_outputs(
    status: str = "completed",
) -> st.SearchStrategy[FunctionCallOutput]:
    """Outputs, as a string or in parts."""
    return _struct(
        FunctionCallOutput,
        id=_ids("fco"),
        status=st.just(status),
        call_id=words(max_size=64),
        output=st.one_of(json_texts(), _tuples(_input_parts(), max_size=2)),
    )


@functools.cache
def reasonings() -> st.SearchStrategy[Reasoning]:
    """Reasoning: raw, summed up, sealed, or any of these together."""
    return _struct(
        Reasoning,
        id=_ids("rs"),
        summary=_tuples(_struct(SummaryText, text=texts())),
        content=_maybe(_tuples(_struct(ReasoningText, text=texts()))),
        encrypted_content=_maybe(texts()),
    )


def unknown_items(status: str = "completed") -> st.SearchStrategy[UnknownItem]:
    """Items of a vendor's own type, which have an id and a status."""
    keys = _unknown_extras(id=_ids("x"), status=st.just(status))
    return st.builds(UnknownItem, type_name=_vendor_types(), extra=keys)


@functools.cache
def _items_with_status(status: str) -> st.SearchStrategy[Item]:
    return st.one_of(
        messages(status),
        function_calls(status),
        function_call_outputs(status),
        unknown_items(status),
    )


@functools.cache
def items() -> st.SearchStrategy[Item]:
    """Finished items of every type a response may hold, unknown ones included."""
    compactions = _struct(
        Compaction,
        id=_ids("cmp"),
        encrypted_content=texts(),
        created_by=_maybe(words()),
    )
    return st.one_of(_items_with_status("completed"), reasonings(), compactions)


def item_id(item: Item) -> object:
    """The id of an item, of whatever type."""
    return item.extra["id"] if isinstance(item, UnknownItem) else item.id


# --- responses -------------------------------------------------------------


@functools.cache
def usages() -> st.SearchStrategy[Usage]:
    """Token counts that add up."""
    count = st.integers(0, 2**40)
    cached = _struct(InputTokensDetails, cached_tokens=count)
    thought = _struct(OutputTokensDetails, reasoning_tokens=count)
    return st.tuples(count, count, cached, thought, extras()).map(
        lambda drawn: Usage(
            input_tokens=drawn[0],
            output_tokens=drawn[1],
            total_tokens=drawn[0] + drawn[1],
            input_tokens_details=drawn[2],
            output_tokens_details=drawn[3],
            extra=drawn[4],
        )
    )


@functools.cache
def _echoed_tools() -> st.SearchStrategy[EchoedTool | UnknownTool]:
    parameters = st.dictionaries(texts(), json_values(), max_size=2)
    return st.one_of(
        _struct(
            EchoedTool,
            name=words(max_size=64),
            description=_maybe(texts()),
            parameters=_maybe(parameters),
            strict=_maybe(st.booleans()),
        ),
        st.builds(UnknownTool, type_name=_vendor_types(), extra=_unknown_extras()),
    )


@functools.cache
def _responses(status: str) -> st.SearchStrategy[Response]:
    number = st.floats(0, 2, allow_nan=False)
    settings: dict[str, st.SearchStrategy[object]] = {
        "id": _ids("resp"),
        "created_at": st.integers(0, 2**40),
        "model": texts(),
        "usage": _maybe(usages()),
        "previous_response_id": _maybe(_ids("resp")),
        "instructions": _maybe(texts()),
        "tools": _tuples(_echoed_tools(), max_size=2),
        "tool_choice": st.sampled_from(["none", "auto", "required"]),
        "temperature": number,
        "top_p": number,
        "max_output_tokens": _maybe(st.integers(16, 2**40)),
        "store": st.booleans(),
        "metadata": st.dictionaries(words(), texts(), max_size=2),
        "extra": extras(),
    }
    return st.builds(Response, status=st.just(status), **settings)


@st.composite
def legal_responses(draw: st.DrawFn) -> Response:
    """Responses that have ended, as the standard allows them to end.

    Only the last item may be incomplete. It is in a response that is incomplete and
    has items at all; it may be in one that failed; it is not in one that completed.
    ``completed_at`` belongs to completed, ``error`` to failed, and
    ``incomplete_details`` to incomplete responses. Item ids are unique.
    """
    status = draw(st.sampled_from(["completed", "failed", "incomplete"]))
    output = draw(st.lists(items(), max_size=4, unique_by=item_id))
    if output and (
        status == "incomplete" or (status == "failed" and draw(st.booleans()))
    ):
        taken = {item_id(item) for item in output[:-1]}
        cut = _items_with_status("incomplete")
        output[-1] = draw(cut.filter(lambda item: item_id(item) not in taken))
    response = draw(_responses(status))
    response = msgspec.structs.replace(response, output=tuple(output))
    if status == "failed":
        error = draw(_struct(ResponseError, code=words(), message=texts()))
        return msgspec.structs.replace(response, error=error)
    if status == "incomplete":
        details = draw(_struct(IncompleteDetails, reason=words()))
        return msgspec.structs.replace(response, incomplete_details=details)
    completed_at = draw(st.one_of(st.none(), st.integers(0, 2**40)))
    return msgspec.structs.replace(response, completed_at=completed_at)
