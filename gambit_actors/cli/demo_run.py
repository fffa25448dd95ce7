"""``gambit demo`` without a file: a tree of decks at work, on a model that is a script.

The decks and the script come with the package. All else is as in any run.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import trio
from rich.rule import Rule
from rich.text import Text

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.actors.trees import LiveActor
from gambit_actors.cli.flow import printable
from gambit_actors.cli.showing import PipeConsole, Show
from gambit_actors.cli.stage import Ending, tell_end
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Script, script_from_toml
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.events import ModelCall, TraceEvent

MESSAGE = "My headlamp from order LL-1003 arrived broken. I want my money back."

_HERE = Path(__file__).parent
DECK = str(_HERE / "demo_decks" / "desk")
_NARROWEST = 20
_PAUSE_SECONDS = 0.06
_UNCONFINED = (
    "order_lookup is code that declares no permissions, so it ran in this process."
)


def show_demo(*, is_paced: bool) -> int:
    """Run the desk that comes with the package; gives the exit code."""
    console = PipeConsole(highlight=False)
    console.width = max(console.width, _NARROWEST)
    console.print(Rule("a desk, a clerk below it, and a scripted model", align="left"))
    console.print(Text(f"{'asked':<8}", style="bold").append(MESSAGE, style="not bold"))
    show = Show(console, console, is_labelled=True)
    ending, crowd, results = Ending(), Crowd(), list[RunResult]()

    async def work() -> None:
        async with open_runtime(
            ScriptedProvider(shipped_script(is_paced=is_paced)),
            reader=DiskReader(),
            sinks=[crowd, ending],
            options=RunOptions(on_tool=answer_tool),
        ) as runtime:
            crowd.runtime = runtime
            async with (
                runtime.open_session(DECK) as session,
                session.stream(MESSAGE) as stream,
            ):
                async for event in stream:
                    show.feed(event)
            show.finish(stream.result)
            results.append(stream.result)

    try:
        code = run_until_stopped(work)
    finally:
        show.close()
    if code:
        return code
    console.print()
    console.print(Rule("the actors, when most were alive", align="left"))
    for line in crowd.lines():
        console.print(line, soft_wrap=True)
    console.print(Text(_UNCONFINED, style="dim"), soft_wrap=True)
    console.print()
    return tell_end(results[0], ending, console)


def shipped_script(*, is_paced: bool) -> Script:
    """What the models of the demo say; paced, in the time that people read in."""
    script = script_from_toml((_HERE / "demo.toml").read_text(encoding="utf-8"))
    if not is_paced:
        return script
    return Script(
        tuple(
            msgspec.structs.replace(reply, per_delta_seconds=_PAUSE_SECONDS)
            for reply in script.replies
        )
    )


async def answer_tool(call: ExternalCall) -> JSONValue:
    """Carry out the desk's external tool: here, the program around it is the demo."""
    await trio.lowlevel.checkpoint()
    return {"saved": True, "orderNumber": call.args["orderNumber"]}


class Crowd:
    """A sink that remembers who was alive when most actors were.

    It looks at the runtime whenever a model is asked, in the very step that tells of
    it, and not when a reader gets to know.
    """

    def __init__(self) -> None:
        self.runtime: Runtime | None = None
        self._most: list[LiveActor] = []

    def __call__(self, event: TraceEvent) -> None:
        """Look who is there."""
        if self.runtime is None or not isinstance(event, ModelCall):
            return
        alive = list(_all_of(self.runtime.snapshot()))
        if len(alive) >= len(self._most):
            self._most = alive

    def lines(self) -> list[Text]:
        """The tree, a line for each actor, those below another indented."""
        names = [f"{'  ' * live.depth}{live.deck}" for live in self._most]
        width = max(map(len, names), default=0)
        return [
            Text(f"{printable(name):<{width}}  ").append(
                printable(live.doing), style="dim"
            )
            for name, live in zip(names, self._most, strict=True)
        ]


def _all_of(actors: tuple[LiveActor, ...]) -> Iterator[LiveActor]:
    """Actors with all below them, each before its children."""
    for actor in actors:
        yield actor
        yield from _all_of(actor.children)
