"""Scripts are read with every mistake placed, and replies are picked by plain rules."""

import contextlib
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadScript, RequestError
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    assistant_message,
    system_message,
    user_message,
)
from gambit_actors.openresponses.parts import InputText
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripts import (
    Call,
    Reply,
    Script,
    TokenCount,
    Told,
    find_reply,
    last_told,
    script_from_jsonl,
    script_from_toml,
)
from gambit_actors.run.ports import ModelContext

DECK = "decks/support/PROMPT.md"
EXAMPLE = """\
[[replies]]
deck = "*/support/PROMPT.md"
calls = [{ name = "order_lookup", arguments = { orderNumber = "LL-1001" } }]
[[replies]]
after = "order_lookup"
text = "It was sent two days ago."
"""
HELLO = Reply(text="Hello.")


def context(*, turn: int = 1, pass_number: int = 1, deck: str = DECK) -> ModelContext:
    """Make the context of one call."""
    return ModelContext(run_id="run_1", deck=deck, turn=turn, pass_number=pass_number)


def fits(reply: Reply, *, told: Told | None = None, deck: str = DECK) -> bool:
    """Whether a reply is picked in turn 2, pass 3."""
    asked = context(turn=2, pass_number=3, deck=deck)
    return find_reply([reply], {}, context=asked, told=told or Told()) == 0


def call(name: str, call_id: str) -> FunctionCall:
    """Make a call without arguments."""
    return FunctionCall(name=name, call_id=call_id, arguments="{}")


def output(call_id: str, text: str) -> FunctionCallOutput:
    """Make what a call gave."""
    return FunctionCallOutput(call_id=call_id, output=text)


# Matching


@pytest.mark.parametrize(
    ("reply", "is_fit"),
    [
        (Reply(text=""), True),
        (Reply(text="", turn=2), True),
        (Reply(text="", turn=1), False),
        (Reply(text="", pass_number=3), True),
        (Reply(text="", pass_number=2), False),
        (Reply(text="", turn=2, pass_number=1), False),
        (Reply(text="", contains="order"), True),
        (Reply(text="", contains="refund"), False),
        (Reply(text="", after="lookup"), True),
        (Reply(text="", after="look"), False),
        (Reply(text="", deck=DECK), True),
        (Reply(text="", deck="*/support/*"), True),
        (Reply(text="", deck="*/sales/*"), False),
        (Reply(text="", deck="*/SUPPORT/*"), False),
    ],
)
def test_every_condition_has_to_hold(*, reply: Reply, is_fit: bool) -> None:
    """A reply fits where each thing it says about the moment is so."""
    told = Told("the order is lost", frozenset({"lookup"}))
    assert fits(reply, told=told) is is_fit


def test_a_glob_for_any_folder_means_the_working_folder_too() -> None:
    """A deck without a folder before it is matched by a pattern that begins so."""
    reply = Reply(text="", deck="*/support/PROMPT.md")
    assert fits(reply, deck="support/PROMPT.md")
    assert fits(reply, deck="/a/b/support/PROMPT.md")
    assert not fits(reply, deck="unsupport/PROMPT.md")


def test_the_first_that_fits_wins() -> None:
    """Order decides between replies that fit."""
    replies = [Reply(text="a", turn=2), Reply(text="b"), Reply(text="c")]
    assert find_reply(replies, {}, context=context(), told=Told()) == 1


@pytest.mark.parametrize(
    ("times", "used", "place"), [(1, 0, 0), (1, 1, 1), (3, 2, 0), (3, 3, 1), (0, 99, 0)]
)
def test_a_reply_used_up_is_passed_over(times: int, used: int, place: int) -> None:
    """A reply serves as often as it says, and for ever if it says 0."""
    replies = [Reply(text="a", times=times), Reply(text="b")]
    found = find_reply(replies, {0: used}, context=context(), told=Told())
    assert found == place


def test_nothing_is_found_where_nothing_fits() -> None:
    """An empty script, and one that is used up, have no reply."""
    assert find_reply([], {}, context=context(), told=Told()) is None
    assert find_reply([HELLO], {0: 1}, context=context(), told=Told()) is None


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (None, Told()),
        ("plain", Told("plain")),
        ((), Told()),
        ((system_message("s"),), Told()),
        ((user_message("a"), system_message("s")), Told("a")),
        ((user_message("a"), assistant_message("b"), user_message("c")), Told("c")),
        ((user_message("a"), assistant_message("b")), Told("a")),
        ((Message(role="user", content="bare"),), Told("bare")),
        (
            (user_message("a"), call("f", "1"), output("1", "x")),
            Told("x", frozenset({"f"})),
        ),
        (
            (call("f", "1"), call("g", "2"), output("2", "y"), output("1", "x")),
            Told("y\nx", frozenset({"f", "g"})),
        ),
        (
            (call("f", "1"), output("1", "x"), call("g", "2"), output("2", "y")),
            Told("y", frozenset({"g"})),
        ),
        ((call("f", "1"), output("1", "x"), user_message("a")), Told("a")),
        ((output("1", "x"),), Told("x")),
        ((user_message("a"), output("9", "x")), Told("x")),
    ],
)
def test_what_the_model_was_told_last(
    items: str | tuple[Item, ...] | None, told: Told
) -> None:
    """The last word is the user's or the tools', whichever came later."""
    assert last_told(CreateResponse(input=items)) == told


def test_the_mark_of_an_ended_action_is_not_the_last_word() -> None:
    """A gambit_complete that the runtime adds hides no tool's name and no output."""
    items = (
        call("order_lookup", "1"),
        output("1", "sent"),
        call("gambit_complete", "2"),
        output("2", '{"status":200}'),
    )
    told = last_told(CreateResponse(input=items))
    assert told == Told("sent", frozenset({"order_lookup"}))


def test_an_output_in_parts_is_read_as_its_text() -> None:
    """Parts of an output are joined; those without text count as nothing."""
    parts = (InputText(text="a"), InputText(text="b"))
    items = (FunctionCallOutput(call_id="1", output=parts),)
    assert last_told(CreateResponse(input=items)).text == "ab"


# Reading


def test_the_toml_example_is_read() -> None:
    """The form in the documentation gives the replies it looks like."""
    lookup = Call(name="order_lookup", arguments={"orderNumber": "LL-1001"})
    assert script_from_toml(EXAMPLE).replies == (
        Reply(deck="*/support/PROMPT.md", calls=(lookup,)),
        Reply(after="order_lookup", text="It was sent two days ago."),
    )


def test_json_lines_are_read() -> None:
    """Each line is a reply; empty ones, CRLF, a BOM and U+2028 do no harm."""
    text = '\ufeff{"text":"a\u2028b"}\r\n\n  \n{"calls":[{"name":"f"}],"times":0}\n'
    assert script_from_jsonl(text).replies == (
        Reply(text="a\u2028b"),
        Reply(calls=(Call(name="f"),), times=0),
    )


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "replies = []"])
def test_a_script_may_be_empty(text: str) -> None:
    """No replies are a script too, one that is exhausted at once."""
    assert script_from_toml(text).replies == ()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[[replies]]\ntxt = 'a'", 2, "a reply has no key 'txt'. Did you mean text?"),
        ("[[reply]]", 1, "a script has no key 'reply', only [[replies]]"),
        ("x = 1\n", 1, "a script has no key 'x', only [[replies]]"),
        (
            "[[replies]]\ntext=''\n\npass = 2",
            4,
            "a reply has no key 'pass'. Did you mean pass_number?",
        ),
        (
            "[[replies]]\ntext=''\n[[replies]]\ncalls = [\n{ nmae = 'f' }]",
            5,
            "a call has no key 'nmae'. Did you mean name?",
        ),
        (
            "[[replies]]\ntext=''\nusage = { input = 3 }",
            3,
            "usage has no key 'input'. Did you mean input_tokens?",
        ),
        ("[[replies]]\ntext = 7", 2, "text: expected a string, got 7"),
        (
            "[[replies]]\ntext=''\ntimes = -1",
            3,
            "times: expected a whole number of at least 0, got -1",
        ),
        (
            "[[replies]]\ntext=''\nlatency_seconds = nan",
            3,
            "latency_seconds: expected a number of at least 0",
        ),
        ("[[replies]]\ncalls = 'f'", 2, 'calls: expected a list, got "f"'),
        ("[[replies]]\ncalls = ['f']", 2, 'calls[0]: expected an object, got "f"'),
        ("[[replies]]\ncalls = [{}]", 2, "calls[0]: the key 'name' is missing"),
        (
            "[[replies]]\ncalls = [{ name = 'f', arguments = 3 }]",
            2,
            "calls[0].arguments: expected an object or a string, got 3",
        ),
        ("[[replies]]\ntext=''\nusage = 3", 3, "usage: expected an object, got 3"),
        ("\n[[replies]]\nturn = 1", 2, "the reply says nothing; text = "),
        (
            "[[replies]]\ntext = ''\nfault = 'explode'",
            3,
            "fault: expected one of error, hang, cut, malformed, flood, failed, ",
        ),
        (
            "[[replies]]\ntext=''\nstatus = 500",
            3,
            "status needs a fault, one of error",
        ),
        (
            "[[replies]]\nfault='hang'\ncount = 5",
            3,
            "count needs a fault, one of flood",
        ),
        ("replies = 3", 1, "replies is an array of tables: write [[replies]]"),
        ("\nreplies = [3]", 2, "expected an object, got 3"),
        ("[[replies]]\ntext = ", 2, "not TOML: Invalid value"),
    ],
)
def test_a_mistake_in_toml_has_its_line(text: str, line: int, problem: str) -> None:
    """What is wrong with a script is said once, with its line and a guess."""
    with pytest.raises(BadScript, match=re.escape(problem)) as caught:
        script_from_toml(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: {problem}")
    assert isinstance(caught.value, RequestError)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"text":"a"}\n\n{"txt":"b"}', 3, "a reply has no key 'txt'. Did you mean"),
        ('{"text":', 1, "not JSON: "),
        ('{"text":"a"}\n[]', 2, "expected an object, got []"),
        ('{"text":null}', 1, "the reply says nothing"),
        ('{"calls":null,"text":"a"}', 1, "calls: expected a list, got null"),
        ("[" * 100_000, 1, "not readable: nested too deeply"),
        ('{"text":"\udc80"}', 1, "not JSON: "),
    ],
)
def test_a_mistake_in_json_lines_has_its_line(
    text: str, line: int, problem: str
) -> None:
    """Lines are counted as an editor counts them, the empty ones too."""
    with pytest.raises(BadScript, match=re.escape(problem)) as caught:
        script_from_jsonl(text)
    assert caught.value.line == line


@pytest.mark.parametrize("value", ["[" * 5_000, "9" * 5_000])
def test_what_no_parser_takes_is_refused_as_a_script(value: str) -> None:
    """Nesting and numbers beyond measure are the script's fault, not a crash."""
    with pytest.raises(BadScript, match=r"not readable|not TOML"):
        script_from_toml(f"x = {value}")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(), "reply 2: the reply says nothing"),
        (Reply(text="a", times=-1), "reply 2: times: expected a whole number"),
        (Reply(text="a", code="x"), "reply 2: code needs a fault"),
        (
            Reply(calls=(Call(name="f", arguments={"x": object()}),)),
            "reply 2: not to be written as JSON",
        ),
        (
            Reply(calls=(Call(name="f", arguments={"x": "\ud800"}),)),
            "reply 2: arguments: not JSON",
        ),
        ("hello", "reply 2: expected a Reply, got str"),
    ],
)
def test_replies_made_in_python_are_held_to_the_same(
    reply: Reply, problem: str
) -> None:
    """A script in Python is checked as one in a file is, and names the reply."""
    with pytest.raises(BadScript, match=re.escape(problem)) as caught:
        Script((HELLO, reply))
    assert caught.value.line is None


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            Reply,
            text=st.text(),
            times=st.integers(0, 9),
            turn=st.none() | st.integers(1, 9),
            after=st.none() | st.text(),
            usage=st.none() | st.builds(TokenCount, input_tokens=st.integers(0, 9)),
            calls=st.lists(
                st.builds(
                    Call,
                    name=st.text(),
                    arguments=st.text()
                    | st.dictionaries(st.text(), st.integers(0, 9) | st.text()),
                    call_id=st.none() | st.text(),
                ),
                max_size=2,
            ).map(tuple),
        ),
        max_size=3,
    )
)
def test_a_script_written_as_json_lines_is_read_back(replies: list[Reply]) -> None:
    """Any replies survive being written and read."""
    text = "\n".join(msgspec.json.encode(reply).decode() for reply in replies)
    assert script_from_jsonl(text).replies == tuple(replies)


@given(st.text())
def test_any_text_is_a_script_or_a_bad_one(text: str) -> None:
    """No text brings the readers to anything but a script or a BadScript."""
    for read in (script_from_toml, script_from_jsonl):
        with contextlib.suppress(BadScript):
            assert isinstance(read(text), Script)
