"""What a caller gets wrong is said at once, in words, and breaks nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.sessions import RunResult, Session
from gambit_actors.actors.trees import Limits
from gambit_actors.errors import GambitError, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.budgets import Price
from gambit_actors.run.entry_codec import decode_entry, encode_entry
from gambit_actors.run.ports import ModelContext
from tests.actors.playing import root, stage
from tests.deck.reading import Texts

ONE = {"PROMPT.md": root()}
HELLO = Reply(text="Hello.", times=0)
NAN, INF = float("nan"), float("inf")


def price(**rates: float) -> dict[str, Price]:
    """The price of the one model."""
    return {"scripted/one": Price(**{"input": 1.0, "output": 1.0} | rates)}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"unconfined": "name"}, "unconfined"),
        ({"models": "openai/gpt-5"}, r"write \('openai/gpt-5',\)"),
        ({"prices": (1.0, 2.0)}, "the price of scripted/one is a tuple"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"max_tool_calls": 1.5}, "max_tool_calls"),
        ({"tool_seconds": NAN}, "tool_seconds"),
        ({"tool_seconds": -1}, "tool_seconds"),
        ({"limits": {"max_tokens": -1}}, "max_tokens"),
        ({"limits": {"timeout_seconds": NAN}}, "timeout_seconds"),
        ({"limits": {"timeout_seconds": -1}}, "timeout_seconds"),
        ({"limits": {"max_passes": 0}}, "max_passes"),
        ({"limits": {"max_depth": 0}}, "max_depth"),
        ({"limits": {"max_cost": NAN}}, "max_cost"),
        ({"prices": {"input": -1.0}}, "input"),
        ({"prices": {"output": NAN}}, "output"),
        ({"prices": {"cached_input": -1.0}}, "cached_input"),
        ({"prices": {"input": INF}}, "input has to be 9223372036854775807 or less"),
        ({"prices": {"output": 10**400}}, "output"),
        ({"prices": 5}, "prices is a int"),
        ({"prices": None}, "prices is a NoneType"),
        ({"limits": {"max_cost": INF}}, "limits.max_cost has to be"),
        ({"limits": {"max_cost": 10**400}}, "limits.max_cost has to be"),
        ({"limits": {"max_tokens": 10**5000}}, "limits.max_tokens has to be"),
        ({"limits": {"max_tokens": -(10**5000)}}, "limits.max_tokens has to be"),
        ({"limits": {"max_passes": 10**400}}, "limits.max_passes has to be"),
        ({"limits": {"max_depth": 10**400}}, "limits.max_depth has to be"),
        ({"limits": {"timeout_seconds": 10**400}}, "timeout_seconds has to be"),
        ({"tool_seconds": 10**400}, "tool_seconds has to be"),
        ({"max_tool_calls": 10**400}, "max_tool_calls has to be"),
        ({"mode": "zzz"}, "mode has to be responses or chat, and is 'zzz'"),
        ({"permissions": {"read": True}}, "permissions is a dict"),
        ({"models": 5}, "models is a int"),
        ({"models": (5,)}, "one of models is a int, and has to be a str"),
        ({"runtime_tools": 5}, "runtime_tools is a int"),
        ({"runtime_tools": ({},)}, "one of runtime_tools is a dict"),
        ({"unconfined": 5}, "unconfined is a int"),
    ],
)
async def test_options_that_make_no_sense_are_refused(
    options: dict[str, JSONValue], named: str
) -> None:
    """Before anything runs, with the name of the option in the message."""
    asked = False

    def model(_request: CreateResponse, _context: ModelContext) -> Reply:
        nonlocal asked
        asked = True
        return HELLO

    async with stage(ONE, model) as on:
        with pytest.raises(RequestError, match=named):
            await on.runtime.run("PROMPT.md", message="Hi.", options=made(options))
        assert (await on.runtime.run("PROMPT.md", message="Hi.")).text == "Hello."
    assert asked


def made(options: dict[str, JSONValue]) -> RunOptions:
    """Options of plain values."""
    fields = dict(options)
    if "limits" in fields:
        fields["limits"] = Limits(**fields["limits"])
    prices = fields.get("prices")
    if isinstance(prices, dict):
        fields["prices"] = price(**prices)
    elif isinstance(prices, tuple):
        fields["prices"] = {"scripted/one": prices}
    return RunOptions(**fields)


async def test_no_limit_and_the_largest_are_numbers_that_can_be_kept(
    autojump_clock: MockClock,
) -> None:
    """A run with all limits as far out as they can be is like one without."""
    most = 2**63 - 1
    limits = Limits(
        max_depth=most,
        max_passes=most,
        max_tokens=most,
        max_cost=most,
        timeout_seconds=INF,
    )
    options = RunOptions(
        limits=limits,
        tool_seconds=INF,
        max_tool_calls=most,
        prices=price(output=1e-320),
    )
    async with stage(ONE, [HELLO]) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.", options=options)
        assert result.cost is not None
        assert [decode_entry(encode_entry(entry)) for entry in on.entries()] == (
            on.entries()
        )


async def test_a_deck_may_be_a_path() -> None:
    """A path of pathlib is as good as a text, for a run and for a session."""
    async with stage(ONE, [HELLO]) as on:
        assert (await on.runtime.run(Path("PROMPT.md"), message="Hi.")).text == "Hello."
        async with on.runtime.open_session(Path("PROMPT.md")) as session:
            assert (await session.send("Hi.")).text == "Hello."


@pytest.mark.parametrize(
    "said",
    [
        {"context": object()},
        {"context": {"n": {1, 2}, "of": [object()]}},
        {"context": {"text": "half a pair: \ud800"}},
        {"message": 5},
        {"message": b"Hi."},
        {"message": "half a pair: \ud800"},
    ],
)
@pytest.mark.parametrize("way", ["run", "send", "stream"])
async def test_what_cannot_be_sent_is_refused(
    said: dict[str, JSONValue], way: str
) -> None:
    """Neither the context nor the message may be what has no JSON form."""
    given = {"message": "Hi."} | said

    async with stage(ONE, [HELLO]) as on:
        if way == "run":
            with pytest.raises(RequestError, match=f"the {next(iter(said))}"):
                await on.runtime.run("PROMPT.md", **given)  # type: ignore[arg-type]  # or wrong
        else:
            async with on.runtime.open_session("PROMPT.md") as session:
                with pytest.raises(RequestError, match=f"the {next(iter(said))}"):
                    await say(session, way, given)
                assert not session.is_busy
                assert (await session.send("Hi.")).text == "Hello."
        assert on.runtime.snapshot() == ()


async def say(session: Session, way: str, given: dict[str, JSONValue]) -> None:
    """Say something to a session, and wait for the end."""
    if way == "send":
        await session.send(**given)
        return
    async with session.stream(**given) as stream:
        async for _event in stream:
            pass


async def test_a_deck_that_waits_for_the_user_does_so_once() -> None:
    """After the first message the deck may be asked to go on by itself."""
    script = [Reply(text="One."), Reply(text="Two.")]
    files = {"PROMPT.md": root('startMode = "user"')}
    async with (
        stage(files, script) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        await session.send("Hi.")
        result = await session.send()
    assert result.text == "Two."


@pytest.mark.parametrize("max_events", [0, -1, "5", 2.5, NAN, True, None])
async def test_a_stream_must_have_room_for_something(max_events: int) -> None:
    """A stream that could show nothing is refused, and the session can go on."""
    async with (
        stage(ONE, [HELLO]) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        with pytest.raises(RequestError, match="max_events"):
            async with session.stream("Hi.", max_events=max_events):
                pass
        assert not session.is_busy
        assert (await session.send("Hi.")).text == "Hello."


async def test_who_asks_a_session_that_is_left_is_told_so(
    autojump_clock: MockClock,
) -> None:
    """A task that waits for an answer when the block is left does not wait for ever."""
    found: list[RunResult | RequestError] = []

    async def ask(session: Session) -> None:
        try:
            found.append(await session.send("Hi."))
        except RequestError as problem:
            found.append(problem)

    async with stage(ONE, [Reply(fault="hang")]) as on:
        loaded = await on.runtime.load("PROMPT.md")
        with trio.fail_after(60):
            async with (
                trio.open_nursery() as nursery,
                on.runtime.open_session(loaded) as session,
            ):
                nursery.start_soon(ask, session)  # noqa: ASYNC111  # that is the point
                await wait_all_tasks_blocked()
        assert on.runtime.snapshot() == ()
    (problem,) = found
    assert isinstance(problem, RequestError)
    assert "session" in str(problem)


async def ask_run(runtime: Runtime) -> None:
    """Run the deck."""
    await runtime.run("PROMPT.md", message="Hi.")


async def ask_session(runtime: Runtime) -> None:
    """Open a session and say something."""
    async with runtime.open_session("PROMPT.md") as session:
        await session.send("Hi.")


@pytest.mark.parametrize("ask", [ask_run, ask_session])
async def test_a_runtime_that_was_left_runs_nothing(
    ask: Callable[[Runtime], object],
) -> None:
    """After its block there is nothing that could confine code or end processes."""
    async with open_runtime(ScriptedProvider([HELLO]), reader=Texts(ONE)) as runtime:
        await ask(runtime)  # type: ignore[misc]  # one of the two above
    with pytest.raises(RequestError, match="runtime"):
        await ask(runtime)  # type: ignore[misc]  # as above


class Nothing:
    """A provider that breaks its promise."""

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Give nothing."""
        del request, context, on_event
        await trio.lowlevel.checkpoint()
        return None  # type: ignore[return-value]  # that is the point


async def test_a_provider_that_gives_nothing_is_named() -> None:
    """It is an error that says what is wrong, and not one of our own checks."""
    async with stage(ONE, Nothing()) as on:
        with pytest.RaisesGroup(pytest.RaisesExc(GambitError, match="None")):
            await on.runtime.run("PROMPT.md", message="Hi.")
        assert on.runtime.snapshot() == ()


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ([HELLO], None, "a list answers for no models"),
        (ScriptedProvider([HELLO]), {"on_tool": 1}, "options is a dict"),
    ],
)
async def test_a_runtime_is_not_opened_with_what_it_cannot_use(
    models: object, options: object, words: str
) -> None:
    """Said when it is opened, and not when the first model is asked."""
    with pytest.raises(RequestError, match=words):
        async with open_runtime(models, reader=Texts({}), options=options):  # type: ignore[arg-type]  # that is the mistake
            pass
