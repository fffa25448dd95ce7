"""Saved states in Gambit's shape are read, completed and written back."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadRequest, RequestError, WireError
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.chat import chat_from_items
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.seed_v1 import v1_from_item
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.run.saved_states import (
    FeedbackEntry,
    MessageRef,
    SavedState,
    SessionNotes,
    SessionRating,
    conversation,
    derived,
    json_from_saved_state,
    saved_state_from_json,
    with_items,
)
from tests.openresponses.strategies import extras, items, json_values, texts, words

_T = TypeVar("_T")

STATES = Path(__file__).parent.parent / "fixtures" / "states"
FILES = sorted(STATES.glob("*.json"))
# All but the one whose items are respelled.
GAMBITS_OWN = [file for file in FILES if file.stem != "standard_form"]


def new_ids() -> Callable[[str], str]:
    """Ids that are counted, and so are known."""
    numbers = count(1)
    return lambda prefix: f"{prefix}-new-{next(numbers)}"


def minting_fails(prefix: str) -> str:
    """Where no id is needed."""
    raise AssertionError(prefix)


def fixture(name: str) -> JSONValue:
    """The JSON of a file."""
    return json.loads((STATES / f"{name}.json").read_bytes())


def loaded(name: str, new_id: Callable[[str], str] | None = None) -> SavedState:
    """A file, read."""
    data = (STATES / f"{name}.json").read_bytes()
    return saved_state_from_json(data, new_id=new_id)


def saved(state: SavedState) -> JSONValue:
    """The JSON of a state as a file would have it."""
    return json.loads(json_from_saved_state(state))


def said(messages: JSONValue) -> list[tuple[str, JSONValue]]:
    """The roles and texts of messages."""
    return [(message["role"], message["content"]) for message in messages]


# --- files -----------------------------------------------------------------------


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("file", GAMBITS_OWN, ids=lambda file: file.stem)
def test_a_file_of_gambits_goes_back_as_it_came(file: Path) -> None:
    """Chat-only, responses-only and mixed files are the same JSON after a round."""
    state = saved_state_from_json(file.read_bytes())
    assert saved(state) == json.loads(file.read_bytes())
    assert saved_state_from_json(json_from_saved_state(state)) == state


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("name", ["chat_only", "feedback", "mixed", "unknown_keys"])
def test_deriving_leaves_alone_what_is_right(name: str) -> None:
    """Where messages say what the items say, no message and no ref is made anew."""
    assert saved(derived(loaded(name), minting_fails)) == fixture(name)


@pytest.mark.spec("OR-9")
def test_all_that_a_state_may_have_is_read() -> None:
    """Every key of the format has its place, under its own name."""
    state = loaded("feedback")
    assert (state.run_id, state.format, state.mode) == ("run-feedback", "chat", "chat")
    assert [m["role"] for m in state.messages or ()][:2] == ["system", "assistant"]
    assert state.message_refs is not None
    assert state.message_refs[3] == MessageRef(
        id="msg-000000000000000000000004", role="user", source="scenario"
    )
    assert state.feedback is not None
    assert state.feedback[0] == FeedbackEntry(
        id="fb-1",
        run_id="run-feedback",
        message_ref_id="msg-000000000000000000000007",
        score=2,
        reason="Kind and short.",
        created_at="2026-02-18T10:00:00.000Z",
    )
    assert state.notes == SessionNotes(
        text="Try it with two orders.\nAnd with none.",
        updated_at="2026-02-18T10:02:00.000Z",
    )
    assert state.conversation_score == SessionRating(
        score=3, updated_at="2026-02-18T10:03:00.000Z"
    )
    assert [trace["type"] for trace in state.traces or ()] == ["run.start", "run.end"]
    assert state.meta is not None
    assert state.meta["initialized"] is True
    assert loaded("mixed").items is not None


@pytest.mark.spec("OR-9")
@pytest.mark.parametrize(
    ("document", "mode"),
    [
        ({"messages": []}, "chat"),
        ({"messages": [{"role": "user", "content": "a"}], "items": []}, "chat"),
        ({"items": []}, "responses"),
        ({"messages": None, "items": []}, "responses"),
        ({"format": None, "messages": []}, "chat"),
        ({"format": "responses", "messages": []}, "responses"),
        ({"format": "chat", "items": []}, "chat"),
    ],
)
def test_a_state_without_a_format_is_a_chat_if_it_has_messages(
    document: JSONValue, mode: str
) -> None:
    """What is said counts; else messages mean chat, and items alone responses."""
    assert saved_state_from_json({"runId": "r"} | document).mode == mode


def test_a_file_is_written_for_people_too() -> None:
    """Two spaces of indent, letters as they are, and a line end at the end."""
    state = SavedState(run_id="r", messages=({"role": "user", "content": "Grüße"},))
    assert json_from_saved_state(state).decode() == (
        '{\n  "runId": "r",\n  "messages": [\n    {\n      "role": "user",\n'
        '      "content": "Grüße"\n    }\n  ]\n}\n'
    )


def test_a_byte_order_mark_is_passed_over() -> None:
    """An editor on Windows may have put one there."""
    assert saved_state_from_json(b'\xef\xbb\xbf{"runId":"r","items":[]}').run_id == "r"


def test_the_standards_form_is_read_and_goes_back_as_v1() -> None:
    """Status, plain strings and empty annotations are the standard's; nulls stay."""
    state = loaded("standard_form")
    assert state.items is not None
    read = conversation(state)
    assert [type(item) for item in read] == [
        *(Message, Message, Reasoning, Message, FunctionCall, FunctionCallOutput)
    ]
    # The two nulls and the empty list are what the structs do not keep.
    assert state.items[2]["status"] is None
    assert state.items[0] == v1_from_item(read[0])
    assert state.items[1]["type"] == "message"
    assert state.items[1]["content"] == [
        {"type": "input_text", "text": "Where is LL-1001?"}
    ]
    assert state.items[3]["content"] == [
        {"type": "output_text", "text": "I will look.", "logprobs": []}
    ]
    assert all("status" not in item for item in state.items[3:])


@pytest.mark.slow
@given(st.lists(items(), max_size=5))
def test_items_are_written_as_v1_writes_them(given_items: list[Item]) -> None:
    """An item in the standard's form becomes what `seed_v1` makes of it."""
    document = {"runId": "r", "items": to_builtins(tuple(given_items))}
    state = saved_state_from_json(document)
    assert state.items == tuple(v1_from_item(item) for item in given_items)


# --- what is none ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "expected an object, got []"),
        ({"items": []}, "the key 'runId' is missing"),
        ({"runId": 7, "items": []}, "runId: expected a string, got 7"),
        ({"runId": "r"}, "it has neither messages nor items"),
        (
            {"runId": "r", "items": [], "format": "xml"},
            'format: expected one of chat, responses, got "xml"',
        ),
        ({"runId": "r", "items": {}}, "items: expected a list, got {}"),
        ({"runId": "r", "items": [7]}, "items[0]: expected an object, got 7"),
        (
            {"runId": "r", "items": [{"type": "message", "role": "user"}]},
            "items[0]: the key 'content' is missing",
        ),
        (
            {"runId": "r", "messages": [{"role": "user"}, {"role": "x"}]},
            "messages[1].role: expected one of ",
        ),
        (
            {"runId": "r", "messages": [{"role": "tool", "content": "a"}]},
            "messages[0]: a tool message needs a tool_call_id",
        ),
        (
            {"runId": "r", "items": [], "feedback": [{"id": "f"}]},
            "feedback[0]: the key 'runId' is missing",
        ),
        (
            {"runId": "r", "items": [], "conversationScore": {"score": "high"}},
            "conversationScore.score: expected a whole number or a number, got",
        ),
    ],
)
def test_what_is_no_saved_state_is_refused(document: JSONValue, words: str) -> None:
    """The error says in one sentence where it fails and how."""
    with pytest.raises(BadRequest) as caught:
        saved_state_from_json(document)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, RequestError)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b'{"runId": "r", "items": [', b"7"]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    """Bytes that are cut or are something else are an error, never nothing."""
    with pytest.raises(BadRequest):
        saved_state_from_json(data)


def test_what_cannot_be_written_is_refused() -> None:
    """A state that code put something strange into is an error of ours to catch."""
    with pytest.raises(WireError, match="cannot be written"):
        json_from_saved_state(SavedState(run_id="\ud800", items=()))


# --- deriving --------------------------------------------------------------------


@pytest.mark.spec("OR-9")
@pytest.mark.parametrize("name", ["items_only", "responses_only"])
def test_messages_are_derived_from_items(name: str) -> None:
    """A file with items alone gets a chat, and a ref for each of its messages."""
    state = loaded(name, new_ids())
    assert state.format == "responses"
    chat = fixture("chat_only")["messages"]
    assert said(state.messages) == said(chat)
    calls = [message.get("tool_calls") for message in state.messages or ()]
    assert calls == [message.get("tool_calls") for message in chat]
    refs = state.message_refs or ()
    assert [ref.id for ref in refs] == [f"msg-new-{n}" for n in range(1, 8)]
    assert [ref.role for ref in refs] == [message["role"] for message in chat]
    assert saved(state)["items"] == fixture(name)["items"]


@pytest.mark.spec("OR-9")
def test_where_items_say_otherwise_they_rule() -> None:
    """In responses mode the messages follow the items; refs in their place stay."""
    document = fixture("mixed")
    document["items"][3]["content"][0]["text"] = "And LL-1002?"
    del document["items"][4]
    state = saved_state_from_json(document, new_id=new_ids())
    assert said(state.messages)[3:] == [
        ("user", "And LL-1002?"),
        ("assistant", None),
        ("tool", '{"status": 200, "payload": "sent"}'),
        ("assistant", "It was sent — two days ago."),
    ]
    assert saved(state)["messageRefs"] == document["messageRefs"]
    # Up to there, they are as they were.
    assert (state.messages or ())[:3] == tuple(document["messages"][:3])


def test_refs_that_do_not_fit_are_minted() -> None:
    """A ref is kept if the message in its place has its role."""
    document = fixture("mixed")
    document["messageRefs"] = [
        {"id": "msg-1", "role": "system"},
        {"id": "msg-2", "role": "user"},
        {"id": "msg-3", "role": "tool"},
    ]
    state = saved_state_from_json(document, new_id=new_ids())
    ids = [ref.id for ref in state.message_refs or ()]
    assert ids[:4] == ["msg-1", "msg-new-1", "msg-3", "msg-new-2"]
    assert len(ids) == len(document["messages"])


def test_in_chat_mode_the_messages_rule() -> None:
    """Items that say otherwise are kept as they are, and do not count."""
    document = fixture("mixed") | {"format": "chat"}
    document["messages"] = document["messages"][:1]
    state = saved_state_from_json(document, new_id=new_ids())
    (only,) = conversation(state)
    assert isinstance(only, Message)
    assert only.role == "system"
    assert saved(state)["items"] == document["items"]
    assert len(state.messages or ()) == len(state.message_refs or ()) == 1


def test_in_chat_mode_items_that_say_the_same_add_to_it() -> None:
    """Nothing is lost where a file does not name its mode, as old ones do not."""
    document = fixture("mixed")
    del document["format"]
    state = saved_state_from_json(document)
    assert state.mode == "chat"
    kinds = [type(item) for item in conversation(state)]
    assert kinds[-2:] == [Reasoning, UnknownItem]


def test_outputs_that_gambit_has_no_item_for_do_not_matter() -> None:
    """A tool message without content is one that Gambit makes no item of."""
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    function = {"name": "f", "arguments": "{}"}
    tool_call = {"id": "c", "type": "function", "function": function}
    document = {
        "runId": "r",
        "format": "responses",
        "messages": [
            {"role": "assistant", "content": "", "tool_calls": [tool_call]},
            {"role": "tool", "tool_call_id": "c", "content": None},
            {"role": "assistant", "content": None},
            {"role": "assistant", "content": "Done."},
        ],
        "items": [call, v1_from_item(assistant_message("Done."))],
    }
    state = saved_state_from_json(document, new_id=new_ids())
    assert saved(state)["messages"] == document["messages"]


def test_items_without_a_place_in_a_chat_keep_theirs() -> None:
    """Reasoning stays before the answer it led to, with a conversation that grew."""
    state = loaded("responses_only", new_ids())
    longer = [*conversation(state), user_message("Thanks."), assistant_message("Bye.")]
    grown = with_items(state, longer, new_ids(), mode="responses")
    assert saved(grown)["items"][:-2] == fixture("responses_only")["items"]
    assert (grown.messages or ())[:-2] == state.messages
    assert said((grown.messages or ())[-2:]) == [
        ("user", "Thanks."),
        ("assistant", "Bye."),
    ]
    assert (grown.message_refs or ())[:-2] == state.message_refs


# --- states of any kind ----------------------------------------------------------

REFS = st.builds(
    MessageRef,
    id=words(),
    role=st.sampled_from(["user", "assistant", "tool"]),
    source=st.sampled_from([None, "scenario", "manual", "artifact"]),
    extra=extras(),
)
SCORES = st.integers(-3, 3) | st.floats(-3, 3)
MAYBE_TEXT = st.none() | texts()
FEEDBACK = st.builds(
    FeedbackEntry,
    id=words(),
    run_id=words(),
    message_ref_id=words(),
    score=SCORES,
    reason=MAYBE_TEXT,
    created_at=texts(),
    extra=extras(),
)
NOTES = st.builds(SessionNotes, text=MAYBE_TEXT, updated_at=MAYBE_TEXT, extra=extras())
RATINGS = st.builds(SessionRating, score=SCORES, updated_at=MAYBE_TEXT, extra=extras())
CONVERSATIONS = st.lists(
    items() | st.builds(user_message, texts()) | st.builds(assistant_message, texts()),
    max_size=6,
)


def chat_of(told: list[Item]) -> tuple[JSONValue, ...]:
    """Items as the messages of a file."""
    return tuple(to_builtins(message) for message in chat_from_items(told).messages)


def items_of(told: list[Item]) -> tuple[JSONValue, ...]:
    """Items as the items of a file."""
    return tuple(v1_from_item(item) for item in told)


def maybe_many(
    values: st.SearchStrategy[_T],
) -> st.SearchStrategy[tuple[_T, ...] | None]:
    """A list that may not be there."""
    return st.none() | st.lists(values, max_size=3).map(tuple)


@st.composite
def states(draw: st.DrawFn) -> SavedState:
    """States with any of the two lists, which may or may not agree."""
    told = draw(CONVERSATIONS)
    other = draw(st.sampled_from([told, told[:2]]) | CONVERSATIONS)
    lists = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    extra = draw(extras())
    null = draw(st.sampled_from([{}, {"notes": None}]))
    return SavedState(
        run_id=draw(words()),
        format=draw(st.sampled_from([None, "chat", "responses"])),
        messages=chat_of(other) if lists[0] else None,
        items=items_of(told) if lists[1] else None,
        message_refs=draw(maybe_many(REFS)),
        traces=draw(maybe_many(json_values())),
        meta=draw(st.none() | st.dictionaries(texts(), json_values(), max_size=3)),
        feedback=draw(maybe_many(FEEDBACK)),
        notes=None if null else draw(st.none() | NOTES),
        conversation_score=draw(st.none() | RATINGS),
        extra=Extra(extra | null),
    )


@pytest.mark.slow
@pytest.mark.spec("OR-10")
@given(states())
def test_a_state_that_is_saved_is_loaded_as_it_was(state: SavedState) -> None:
    """With every key, every null and every item that nobody knows."""
    assert saved_state_from_json(json_from_saved_state(state)) == state


@pytest.mark.slow
@pytest.mark.spec("OR-9")
@given(states())
def test_what_is_derived_stays(state: SavedState) -> None:
    """Deriving twice is deriving once, and what a state says stays the same by it."""
    once = derived(state, new_ids())
    assert derived(once, minting_fails) == once
    assert conversation(once) == conversation(state)
    assert saved_state_from_json(json_from_saved_state(once)) == once
    roles = [message["role"] for message in once.messages or ()]
    assert [ref.role for ref in once.message_refs or ()] == roles


@pytest.mark.slow
@pytest.mark.spec("OR-9")
@given(CONVERSATIONS, CONVERSATIONS)
def test_messages_that_are_kept_say_what_the_items_say(
    told: list[Item], more: list[Item]
) -> None:
    """Messages and items of one file never part, however it grew."""
    blank = SavedState(run_id="r")
    state = with_items(blank, told, new_ids(), mode="responses")
    grown = with_items(state, [*told, *more], new_ids(), mode="responses")
    chat = with_items(grown, [*told, *more], minting_fails, mode="chat")
    assert chat.messages == grown.messages
    assert conversation(chat) == conversation(grown)
    assert derived(grown, minting_fails) == grown
    # What it said before is still there, in its words.
    shared = min(len(state.messages or ()), len(grown.messages or ()))
    assert (grown.messages or ())[:shared] == state.messages
