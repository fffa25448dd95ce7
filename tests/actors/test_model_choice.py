"""Which models a run asks, and in which mode it is traced, is the caller's to say."""

import pytest

from gambit_actors.actors.options import RunOptions
from gambit_actors.errors import RequestError
from gambit_actors.providers.scripts import Reply
from gambit_actors.trace.events import ModelCall, ModelResult
from tests.actors.playing import root, stage

HELLO = [Reply(text="Hello.", times=0)]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (RunOptions(models=("other/two",)), "scripted/one"),
        (RunOptions(models=("other/two",), forces_models=True), "other/two"),
    ],
)
async def test_models_of_the_caller_can_take_the_place_of_a_decks(
    options: RunOptions, asked: str
) -> None:
    """A deck's own model comes first, unless the caller insists."""
    async with stage({"PROMPT.md": root()}, HELLO, options) as play:
        await play.runtime.run("PROMPT.md", message="Hi.")
    assert [call.model for call in play.sink.of(ModelCall)] == [asked]


def test_nobody_can_insist_on_no_model() -> None:
    """It would leave every deck without one."""
    with pytest.raises(RequestError, match="forces_models needs models"):
        RunOptions(forces_models=True)


@pytest.mark.spec("OR-11")
@pytest.mark.parametrize("mode", ["responses", "chat"])
async def test_traces_say_in_which_mode_a_model_is_asked(mode: str) -> None:
    """Calls and results carry it."""
    options = RunOptions(mode="chat") if mode == "chat" else RunOptions()
    async with stage({"PROMPT.md": root()}, HELLO, options) as play:
        await play.runtime.run("PROMPT.md", message="Hi.")
    calls, results = play.sink.of(ModelCall), play.sink.of(ModelResult)
    assert [call.mode for call in calls] == [mode]
    assert [result.mode for result in results] == [mode]
