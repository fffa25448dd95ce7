"""The garbage collector: what runs leave to it, and having it look less often."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gambit_actors.actors.collector import RARELY, collect_rarely
from gambit_actors.actors.options import RunOptions
from gambit_actors.providers.scripts import Reply
from tests.actors.playing import ANYTHING, TOOL, calls, root, stage

CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\n'
ACTION = '[[actions]]\nname = "ask"\ndescription = "Ask."\npath = "ask/PROMPT.md"\n'
FILES = {
    "PROMPT.md": root(ACTION + TOOL),
    "ask/PROMPT.md": root(CHILD + TOOL),
    "s.json": ANYTHING,
}
SCRIPT = [
    Reply(deck="*/ask/PROMPT.md", text="{}", times=0),
    *[calls("ask", "crm"), Reply(text="Done.")] * 6,
]
BEFORE = (701, 11, 12)


@pytest.fixture
def collector() -> Iterator[None]:
    """The collector as it is found, which the test may do anything to."""
    found = gc.get_threshold()
    gc.set_threshold(*BEFORE)
    yield
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(*found)


@pytest.mark.usefixtures("collector")
async def test_a_run_leaves_nothing_to_the_collector() -> None:
    """Runs with a child deck and a tool are freed when they are over, with no help."""
    options = RunOptions(on_tool=lambda _call: "noted")
    async with stage(FILES, SCRIPT, options) as on:
        deck = await on.runtime.load("PROMPT.md")
        await on.runtime.run(deck, message="Hi.")
        gc.collect()
        gc.disable()
        for _ in range(5):
            result = await on.runtime.run(deck, message="Hi.")
            assert result.text == "Done."
        assert gc.collect() == 0


@pytest.mark.usefixtures("collector")
def test_the_collector_is_as_it_was_when_the_block_is_left() -> None:
    """It looks less often, and not at what is there, until the block is left."""
    seen = []

    def work_and_fail() -> None:
        with collect_rarely():
            seen.append((gc.get_threshold(), gc.get_freeze_count() > 0))
            raise KeyError

    with pytest.raises(KeyError):
        work_and_fail()
    assert seen == [(RARELY, True)]
    assert gc.get_threshold() == BEFORE
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("collector")
def test_what_others_have_frozen_stays_so() -> None:
    """A program that froze what it had before it forked finds it so afterwards."""
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collect_rarely((1000, 5, 5)):
        assert gc.get_threshold() == (1000, 5, 5)
    assert gc.get_freeze_count() == pytest.approx(frozen, rel=0.01)
    assert gc.get_threshold() == BEFORE


@pytest.mark.usefixtures("collector")
def test_blocks_may_end_in_any_order() -> None:
    """Two services in one process leave it as it was, whichever stops first."""
    first, second = ExitStack(), ExitStack()
    first.enter_context(collect_rarely())
    second.enter_context(collect_rarely())
    first.close()
    second.close()
    assert gc.get_threshold() == BEFORE
    assert gc.get_freeze_count() == 0
