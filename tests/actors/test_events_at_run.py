"""What single events of a trace say of a run: why it ended, what it was asked."""

import pytest

from gambit_actors.providers.scripts import Reply
from gambit_actors.trace.events import (
    DeckStart,
    ModelResult,
    Monolog,
    RunEnd,
    RunStart,
    TraceError,
)
from tests.actors.playing import ANYTHING, action, calls, child, root, stage
from tests.deck.reading import deck_text

RESPOND = calls("gambit_respond", payload={"n": 1}).calls


async def test_the_start_of_a_run_says_what_it_was_asked() -> None:
    """The context as the deck gets it, and the first message; else neither."""
    schema = '{"type": "object", "properties": {"unit": {"default": "kg"}}}'
    files = {"PROMPT.md": root('contextSchema = "s.json"'), "s.json": schema}
    plain = {"PROMPT.md": root('startMode = "assistant"')}
    script = [Reply(text="Done.", times=0)]
    async with stage(files, script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.", context={"n": 7})
        (told,) = on.sink.of(RunStart)
    assert (told.deck_path, told.is_resumed) == ("PROMPT.md", False)
    assert told.input == {"n": 7, "unit": "kg"}
    assert told.initial_user_message == "Hi."
    async with stage(plain, script) as on:
        await on.runtime.run("PROMPT.md")
        (told,) = on.sink.of(RunStart)
    assert (told.input, told.initial_user_message) == (None, None)


@pytest.mark.parametrize("is_session", [True, False])
async def test_the_end_of_a_run_says_why_it_failed(*, is_session: bool) -> None:
    """The code and the words of its failure, in a conversation those of the last."""
    script = [Reply(fault="failed", message="Out of order.")]
    async with stage({"PROMPT.md": root()}, script) as on:
        if is_session:
            async with on.runtime.open_session("PROMPT.md") as session:
                result = await session.send("Hi.")
        else:
            result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        (ended,) = on.sink.of(RunEnd)
    assert result.failure is not None
    code, words = result.failure.code, result.failure.message
    assert (code, "Out of order." in words) == ("model_failed", True)
    assert ended.status == "failed"
    assert ended.error == TraceError(code=code, message=words)


async def test_the_end_of_a_run_that_worked_has_no_error() -> None:
    """Not even where a model failed and another was asked."""
    models = deck_text('[modelParams]\nmodel = ["scripted/a", "scripted/b"]\n')
    script = [Reply(fault="error"), Reply(text="Done.")]
    async with stage({"PROMPT.md": models}, script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        (ended,) = on.sink.of(RunEnd)
    assert (ended.status, ended.error) == ("completed", None)


async def test_the_start_of_a_deck_has_its_label() -> None:
    """Each deck has its own; one without has none."""
    files = {
        "PROMPT.md": root(f'label = "Desk"\n{action("a")}{action("b")}'),
        "a/PROMPT.md": child('label = "Clerk"\n'),
        "b/PROMPT.md": child(),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*/a/PROMPT.md", calls=RESPOND),
        Reply(deck="*/b/PROMPT.md", calls=RESPOND),
        calls("a", "b"),
        Reply(text="Done."),
    ]
    async with stage(files, script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        labels = {e.deck_path: e.label for e in on.sink.of(DeckStart)}
    assert labels == {"PROMPT.md": "Desk", "a/PROMPT.md": "Clerk", "b/PROMPT.md": None}


async def test_what_a_child_says_is_a_monolog_and_what_a_root_says_is_not() -> None:
    """A root speaks to the user; a child, besides its result, to who watches."""
    files = {
        "PROMPT.md": root(action("a")),
        "a/PROMPT.md": child(),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*/a/PROMPT.md", text="To myself.", calls=RESPOND),
        Reply(text="One moment.", calls=calls("a").calls),
        Reply(text="Done."),
    ]
    async with stage(files, script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        told = [(e.deck_path, e.content) for e in on.sink.of(Monolog)]
    assert told == [("a/PROMPT.md", "To myself.")]


@pytest.mark.spec("OR-11")
async def test_a_model_s_result_has_the_words_of_its_answer() -> None:
    """Those it says beside a call as well; none where there are none."""
    files = {
        "PROMPT.md": root(action("a")),
        "a/PROMPT.md": child(),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*/a/PROMPT.md", calls=RESPOND),
        Reply(text="One moment.", calls=calls("a").calls),
        Reply(text="All is done."),
    ]
    async with stage(files, script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        said = [(e.deck_path, e.message) for e in on.sink.of(ModelResult)]
    assert said == [
        ("PROMPT.md", "One moment."),
        ("a/PROMPT.md", ""),
        ("PROMPT.md", "All is done."),
    ]
