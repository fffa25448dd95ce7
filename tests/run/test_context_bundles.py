"""A context bundle is a function of a log, and becomes the input of a request."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadRequest, RequestError
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
    system_message,
    user_message,
)
from gambit_actors.openresponses.parts import InputImage, InputText, SummaryText
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.writing import encode
from gambit_actors.run.context_bundles import (
    BundleCall,
    BundleMessage,
    BundleOutput,
    ContextBundle,
    UnknownBundleItem,
    answers,
    compile_context,
    decode_bundle,
    encode_bundle,
    input_items,
)
from gambit_actors.run.entries import (
    CallStarted,
    Entry,
    ItemAdded,
    MetaSet,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from tests.openresponses.strategies import items
from tests.run.playing import answered, asked, call, called, output, said

RUN = RunStarted(run_id="run-2", deck="support/PROMPT.md", root_run_id="run-1")
LOG: list[Entry] = [
    RUN,  # 0
    TurnStarted(),
    ItemAdded(item=system_message("Be kind."), source="deck"),
    asked("Where is LL-1001?"),
    answered(),  # 4
    ItemAdded(
        item=Reasoning(id="rs_1", summary=(SummaryText(text="Look."),)), source="model"
    ),
    called("order_lookup", '{ "n":1 }', "c1"),
    called("order_lookup", "{}", "c2"),
    CallStarted(call_id="c1", name="order_lookup", kind="tool"),  # 8
    output("sent", "c1"),
    output("lost", "c2"),
    answered(),
    said("It was sent."),  # 12
    TurnEnded(status="completed"),
]


def outline(given_items: tuple[Item, ...]) -> list[str]:
    """Items in a word each."""
    words: list[str] = []
    for item in given_items:
        match item:
            case Message(role=role):
                words.append(role)
            case FunctionCall(call_id=call_id):
                words.append(f"{call_id}?")
            case FunctionCallOutput(call_id=call_id):
                words.append(f"{call_id}!")
            case _:
                words.append(item.type)
    return words


@pytest.mark.spec("PA-6")
def test_a_bundle_has_the_shape_of_its_schema() -> None:
    """Schema, compiler, source, provenance and items, as the contract names them."""
    assert json.loads(encode_bundle(compile_context(LOG, cut=9))) == {
        "schema": "rip.context_bundle.v1",
        "compiler": {
            "id": "gambit.context_compiler.v1",
            "strategy": "whole_conversation_v1",
        },
        "source": {"thread_id": "run-2", "from_seq": 9},
        "provenance": {
            "run_session_id": "run-1",
            "actor_id": "support/PROMPT.md",
            "origin": "gambit_actors",
        },
        "items": [
            {
                "type": "message",
                "role": "system",
                "content": "Be kind.",
                "origin": "deck",
                "thread_seq": 2,
            },
            {
                "type": "message",
                "role": "user",
                "content": "Where is LL-1001?",
                "origin": "user",
                "thread_seq": 3,
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "order_lookup",
                "arguments": '{ "n":1 }',
                "origin": "model",
                "thread_seq": 6,
            },
            {
                "type": "function_call",
                "call_id": "c2",
                "name": "order_lookup",
                "arguments": "{}",
                "origin": "model",
                "thread_seq": 7,
            },
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": "sent",
                "origin": "tool",
                "thread_seq": 9,
            },
        ],
    }


@pytest.mark.spec("PA-6")
@pytest.mark.parametrize(
    ("cut", "shown"),
    [
        (0, []),
        (3, ["system", "user"]),
        (6, ["system", "user"]),
        (8, ["system", "user"]),
        (9, ["system", "user", "c1?", "c1!"]),
        (10, ["system", "user", "c1?", "c2?", "c1!", "c2!"]),
        (13, ["system", "user", "c1?", "c2?", "c1!", "c2!", "assistant"]),
        (None, ["system", "user", "c1?", "c2?", "c1!", "c2!", "assistant"]),
    ],
)
def test_what_a_cut_has_parted_is_left_out(cut: int | None, shown: list[str]) -> None:
    """A call comes with its output or not at all; the cut itself is included."""
    assert outline(input_items(compile_context(LOG, cut=cut))) == shown


@pytest.mark.spec("PA-6")
def test_a_bundle_is_the_input_of_a_request() -> None:
    """Its items are ones that a request is encoded with."""
    request = CreateResponse(input=input_items(compile_context(LOG, cut=3)))
    assert json.loads(encode(request))["input"] == [
        {"type": "message", "role": "system", "content": "Be kind."},
        {"type": "message", "role": "user", "content": "Where is LL-1001?"},
    ]


def test_a_root_is_its_own_session_and_names_its_last_message() -> None:
    """A run without a root above it is one; a message's id is kept if it has one."""
    said = [Message(role="assistant", content="Hi.", id=f"msg_{n}") for n in (1, 2)]
    log: list[Entry] = [
        RunStarted(run_id="run-1", deck="d"),
        *(ItemAdded(item=message, source="model") for message in said),
        asked(),
    ]
    bundle = compile_context(log)
    assert bundle.provenance.run_session_id == bundle.source.thread_id == "run-1"
    assert bundle.source.from_message_id == "msg_2"
    assert compile_context(log, cut=1).source.from_message_id == "msg_1"


def test_what_is_more_than_words_stays_in_parts() -> None:
    """A picture is carried as it is; a message without content is not carried."""
    picture = (InputText(text="See."), InputImage(image_url="data:,"))
    shown = Message(role="user", content=picture)
    added = [shown, Message(role="assistant", content=()), user_message("")]
    log: list[Entry] = [RUN, *(ItemAdded(item=i, source="user") for i in added)]
    assert input_items(compile_context(log)) == (
        shown,
        Message(role="user", content=""),
    )


@pytest.mark.parametrize("cut", [-1, 14, 99])
def test_a_cut_that_the_log_does_not_have_is_refused(cut: int) -> None:
    """A log that grew later would give something else for it."""
    with pytest.raises(RequestError, match=f"no entry {cut}"):
        compile_context(LOG, cut=cut)


@pytest.mark.parametrize("log", [[], LOG[1:]])
def test_a_log_that_does_not_say_whose_it_is_is_refused(log: list[Entry]) -> None:
    """A bundle has to name its source."""
    with pytest.raises(RequestError, match=r"run\.started"):
        compile_context(log)


def test_bundles_of_others_are_read() -> None:
    """Summaries are rendered; keys and types that are not known are kept."""
    document = {
        "schema": "rip.context_bundle.v1",
        "compiler": {"id": "rip.context_compiler.v1", "strategy": "s"},
        "source": {"thread_id": "t", "from_seq": 3, "acme": 1},
        "provenance": {"run_session_id": "r", "actor_id": "a", "origin": "cli"},
        "items": [
            {"type": "summary_ref", "artifact_id": "a1", "note": "Of May."},
            {"type": "summary_ref", "artifact_id": "a2"},
            {"type": "file_ref", "path": "x"},
            {"type": "message", "role": "user", "content": "Hi.", "actor_id": "u"},
            {"type": "function_call_output", "call_id": "c", "output": "alone"},
        ],
        "budget": {"tokens": 9},
    }
    bundle = decode_bundle(json.dumps(document).encode())
    assert json.loads(encode_bundle(bundle)) == document
    assert isinstance(bundle.items[2], UnknownBundleItem)
    heading = "Summary of the conversation so far:"
    assert input_items(bundle) == (
        system_message(f"{heading}\n\nOf May."),
        Message(role="user", content="Hi."),
    )
    assert input_items(bundle, artifacts={"a1": "Sun.", "a2": "Rain."}) == (
        system_message(f"{heading}\n\nOf May.\n\nSun."),
        system_message(f"{heading}\n\nRain."),
        Message(role="user", content="Hi."),
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("[]", "expected an object"),
        ("{", "not JSON"),
        ('{"schema": "rip.context_bundle.v2"}', "schema: expected one of"),
        ('{"schema": "rip.context_bundle.v1"}', "the key 'compiler' is missing"),
    ],
)
def test_what_is_no_bundle_is_refused(document: str, words: str) -> None:
    """Also a later version, which may mean something else."""
    with pytest.raises(BadRequest, match=words):
        decode_bundle(document.encode())


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("", {}),
        ("a? a!", {0: 1}),
        ("a! a?", {}),
        ("a? b? b! a!", {0: 3, 1: 2}),
        ("a? a! a! a? a!", {0: 1, 3: 4}),
        ("a? a? a!", {1: 2}),
    ],
)
def test_an_output_answers_the_last_open_call(made: str, found: dict[int, int]) -> None:
    """Ids may come again; an output without an open call answers none."""
    assert answers([_item(word) for word in made.split()]) == found


def _item(word: str) -> Item:
    call_id = word[0]
    if word.endswith("?"):
        return call("f", "{}", call_id)
    return FunctionCallOutput(call_id=call_id, output="")


# --- logs of any kind -----------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c"])
ENTRIES = st.one_of(
    st.builds(ItemAdded, item=items(), source=st.sampled_from(["model", "tool"])),
    IDS.map(lambda call_id: called("f", "{}", call_id)),
    IDS.map(lambda call_id: output("x", call_id)),
    st.sampled_from(
        [
            *(TurnStarted(), asked(), said("Hm."), answered()),
            *(MetaSet(key="k", value=1), RunEnded(status="completed")),
            TurnEnded(status="completed"),
            ItemAdded(
                item=UnknownItem(type_name="x:y", extra=Extra({"a": 1})), source="model"
            ),
        ]
    ),
)
LOGS = st.lists(ENTRIES, max_size=12).map(lambda entries: [RUN, *entries])


@pytest.mark.slow
@pytest.mark.spec("PA-6")
@given(LOGS, st.data())
def test_a_bundle_depends_on_the_log_up_to_its_cut(
    log: list[Entry], data: st.DataObject
) -> None:
    """Equal entries and an equal cut are equal bytes, whatever came after."""
    cut = data.draw(st.integers(0, len(log) - 1))
    bundle = compile_context(log, cut=cut)
    made = encode_bundle(bundle)
    assert encode_bundle(compile_context(log[: cut + 1], cut=cut)) == made
    assert encode_bundle(compile_context(log[: cut + 1])) == made
    assert decode_bundle(made) == bundle


@pytest.mark.slow
@pytest.mark.spec("PA-6")
@given(LOGS)
def test_input_has_every_call_with_its_output(log: list[Entry]) -> None:
    """In any log, each call is followed by one output and each output has a call."""
    bundle = compile_context(log)
    is_open: list[str] = []
    for item in input_items(bundle):
        match item:
            case FunctionCall(call_id=call_id):
                is_open.append(call_id)
            case FunctionCallOutput(call_id=call_id):
                is_open.remove(call_id)
            case _:
                assert isinstance(item, Message)
    assert not is_open
    assert _messages(bundle) == [
        item for item in input_items(bundle) if isinstance(item, Message)
    ]


def _messages(bundle: ContextBundle) -> list[Message]:
    for item in bundle.items:
        assert isinstance(item, BundleMessage | BundleCall | BundleOutput)
    return [
        Message(role=item.role, content=item.content)
        for item in bundle.items
        if isinstance(item, BundleMessage)
    ]
