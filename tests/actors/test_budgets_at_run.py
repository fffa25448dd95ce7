"""What may be spent is kept in real runs: by one deck, by those below it, by all."""

import json
from collections.abc import Callable, Sequence

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.trees import Limits
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply, TokenCount
from gambit_actors.run.budgets import Price
from gambit_actors.run.ports import ModelContext
from gambit_actors.trace.events import DeckEnd, ModelNotice
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    MODEL,
    TOOL,
    action,
    calls,
    child,
    outputs_of,
    root,
    stage,
)
from tests.deck.reading import deck_text

pytestmark = pytest.mark.spec("CARD-4")

PRICES = {"scripted/one": Price(input=100, output=1000)}
RESPOND = (Call(name="gambit_respond", arguments={"payload": {}}),)


def budget(tokens: int | None = None, cost: float | None = None) -> str:
    """Guardrails of a deck."""
    lines = ["[guardrails]", "maxPasses = 50"]
    lines += [] if tokens is None else [f"maxTokens = {tokens}"]
    lines += [] if cost is None else [f"maxCost = {cost}"]
    return "\n".join(lines) + "\n"


def tree(*names: str, more: str = "", own: str = "") -> dict[str, str]:
    """A deck with children, each in its folder."""
    files = {"PROMPT.md": root(more + "".join(map(action, names)))}
    files |= {f"{name}/PROMPT.md": child(own) for name in names}
    return files | {"any.json": ANYTHING}


class Asked(msgspec.Struct, frozen=True):
    """A request as it came."""

    deck: str
    most: int
    tokens: int
    time: float


class Meter:
    """A model that always calls tools, and uses a part of what it may."""

    def __init__(self, *names: str, share: float = 0.5) -> None:
        self.asked: list[Asked] = []
        self._names = names
        self._share = share

    def __call__(self, request: CreateResponse, context: ModelContext) -> Reply:
        """Note what may be used, and use some of it."""
        most = request.max_output_tokens
        assert most is not None
        # Fewer than the three bytes that they are taken for.
        tokens = len(msgspec.json.encode(request)) // 4
        now = trio.current_time()
        self.asked.append(Asked(context.deck, most, tokens, now))
        used = TokenCount(input_tokens=tokens, output_tokens=int(most * self._share))
        return Reply(calls=calls(*self._names).calls, usage=used)

    def left(self, tokens: int) -> list[int]:
        """What each request found left of a budget, without its own words."""
        found = []
        for asked in self.asked:
            found.append(tokens - asked.tokens)
            tokens -= asked.tokens + int(asked.most * self._share)
        return found


@pytest.mark.parametrize("is_guardrail", [True, False])
async def test_tokens_run_out_with_a_clear_end(is_guardrail: bool) -> None:
    """No request may have a longer answer than what is left; then the deck ends."""
    most = 3000
    text = root((budget(most) if is_guardrail else budget()) + TOOL)
    limits = Limits() if is_guardrail else Limits(max_tokens=most)
    model = Meter("crm")
    async with stage({"PROMPT.md": text}, model, RunOptions(limits=limits)) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
    assert result.failure is not None
    assert result.failure.code == "max_tokens"
    assert len(model.asked) > 2
    for asked, left in zip(model.asked, model.left(most), strict=True):
        assert asked.most <= left
    assert most / 2 < result.usage.total_tokens <= most


@pytest.mark.parametrize("is_guardrail", [True, False])
async def test_money_runs_out_with_a_clear_end(is_guardrail: bool) -> None:
    """With prices a deck, or a run, ends before it has cost more than it may."""
    text = root((budget(cost=1) if is_guardrail else budget()) + TOOL)
    limits = Limits() if is_guardrail else Limits(max_cost=1)
    options = RunOptions(limits=limits, prices=PRICES)
    model = Meter("crm")
    async with stage({"PROMPT.md": text}, model, options) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "max_cost"
    assert len(model.asked) > 2
    assert result.cost is not None
    assert 0.5 < result.cost <= 1
    # The first may have all there is, and no more than that.
    first = model.asked[0]
    most_it_may_cost = (first.tokens * 100 + first.most * 1000) / 1_000_000
    assert 0.9 < most_it_may_cost <= 1


async def test_what_a_run_costs_is_known_where_prices_are() -> None:
    """Tokens times the price of a million, over all passes and decks of a run."""
    used = TokenCount(input_tokens=1000, output_tokens=500)
    script = [
        Reply(deck="PROMPT.md", calls=(Call(name="a"),), usage=used),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND, usage=used),
        Reply(deck="PROMPT.md", text="Done.", usage=used),
    ]
    for prices, cost in ((PRICES, 1.8), ({}, None)):
        async with stage(tree("a"), script, RunOptions(prices=prices)) as on:
            result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert result.cost == (None if cost is None else pytest.approx(cost))
        assert result.usage.total_tokens == 4500


async def test_a_cost_limit_needs_a_price() -> None:
    """A model nobody knows the price of is not asked where money is counted."""
    text = root(budget(cost=1))
    async with stage({"PROMPT.md": text}, [Reply(text="Hi.")]) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "unknown_price"


async def test_a_child_has_a_budget_of_its_own() -> None:
    """When it is spent the child ends, and its parent is told and goes on."""
    meter = Meter("crm")

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        if context.deck == "a/PROMPT.md":
            return meter(request, context)
        # Nobody limits the parent.
        assert request.max_output_tokens is None
        return calls("a") if context.pass_number == 1 else Reply(text="Too dear.")

    files = tree("a", own=budget(2000) + TOOL)
    async with stage(files, model) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert (envelope["code"], envelope["status"]) == ("max_tokens", 500)
    assert result.text == "Too dear."
    for asked, left in zip(meter.asked, meter.left(2000), strict=True):
        assert asked.most <= left


async def test_guardrails_count_by_turn_and_limits_by_run() -> None:
    """A new turn of a session has the deck's budget anew, and the rest of the run's."""
    used = TokenCount(input_tokens=10, output_tokens=600)
    script = [Reply(text="Hello.", usage=used, times=0)]
    for text, limits, ends in (
        (root(budget(1000)), Limits(), ["completed"] * 3),
        (root(), Limits(max_tokens=1000), ["completed", "completed", "failed"]),
    ):
        options = RunOptions(limits=limits)
        async with (
            stage({"PROMPT.md": text}, script, options) as on,
            on.runtime.open_session("PROMPT.md") as session,
        ):
            found = [(await session.send("Hi.")).status for _ in ends]
        assert found == ends


async def test_who_finds_nothing_left_waits_for_what_others_give_back(
    autojump_clock: MockClock,
) -> None:
    """The first of two children has set all aside; the second is served after it."""
    asked: list[Asked] = []

    async def model(request: CreateResponse, context: ModelContext) -> Reply:
        used = TokenCount(input_tokens=10, output_tokens=10)
        if context.deck == "PROMPT.md":
            await trio.lowlevel.checkpoint()
            if context.pass_number == 1:
                return Reply(calls=calls("a", "b").calls, usage=used)
            return Reply(text="Done.", usage=used)
        most = request.max_output_tokens or 0
        asked.append(Asked(context.deck, most, 0, trio.current_time()))
        await trio.sleep(5)
        return Reply(calls=RESPOND, usage=used)

    # Each child would like to have more than there is.
    own = "[modelParams]\nmax_tokens = 100000\nmodel = 'scripted/one'\n"
    text = child().replace('[modelParams]\nmodel = "scripted/one"\n', own)
    files = tree("a", "b", more=budget(3000))
    files |= {"a/PROMPT.md": text, "b/PROMPT.md": text}
    async with stage(files, model) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        result = await on.runtime.run(loaded, message="Hi.")
    outputs = outputs_of(result.items)
    found = [json.loads(outputs[name][0]) for name in ("a", "b")]
    assert [envelope["payload"] for envelope in found] == [{}, {}]
    assert [one.time - began for one in asked] == [0, 5]
    assert min(one.most for one in asked) > 1500


@pytest.mark.parametrize("names", ["ab", "abc"])
async def test_those_side_by_side_get_equal_shares(
    names: str, autojump_clock: MockClock
) -> None:
    """Children that are asked for together may each say about as much."""
    asked: list[Asked] = []
    together = trio.Event()

    async def model(request: CreateResponse, context: ModelContext) -> Reply:
        used = TokenCount(input_tokens=10, output_tokens=10)
        if context.deck == "PROMPT.md":
            await trio.lowlevel.checkpoint()
            if context.pass_number == 1:
                return Reply(calls=calls(*names).calls, usage=used)
            return Reply(text="Done.", usage=used)
        most = request.max_output_tokens or 0
        asked.append(Asked(context.deck, most, 0, trio.current_time()))
        if len(asked) == len(names):
            together.set()
        await together.wait()
        return Reply(calls=RESPOND, usage=used)

    async with stage(tree(*names, more=budget(30_000)), model) as on:
        loaded = await on.runtime.load("PROMPT.md")
        await on.runtime.run(loaded, message="Hi.")
    shares = [one.most for one in asked]
    assert len(shares) == len(names)
    assert 25_000 < sum(shares) < 30_000
    assert min(shares) > 0.9 * max(shares)


@pytest.mark.parametrize("is_cut", [False, True])
async def test_who_asked_for_others_has_all_that_they_left(
    autojump_clock: MockClock, *, is_cut: bool
) -> None:
    """When those side by side are over nobody shares any more, however they ended."""
    said: list[int] = []
    used = TokenCount(input_tokens=10, output_tokens=10)

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        if context.deck != "PROMPT.md":
            return Reply(calls=RESPOND, usage=used, fault="hang" if is_cut else None)
        said.append(request.max_output_tokens or 0)
        both = calls("a", "b").calls if context.pass_number == 1 else ()
        return Reply(text="Well.", calls=both, usage=used)

    # What a cut answer may have used is lost: the children may not say much.
    own = "" if not is_cut else "max_tokens = 100\n"
    files = tree("a", "b", more=budget(30_000))
    for name in ("a", "b"):
        files[f"{name}/PROMPT.md"] = child("[guardrails]\ntimeoutMs = 1000\n").replace(
            MODEL, MODEL + own
        )
    async with stage(files, model) as on:
        loaded = await on.runtime.load("PROMPT.md")
        result = await on.runtime.run(loaded, message="Hi.")
    assert result.text == "Well."
    first, second = said
    assert first > 28_000
    assert second > 0.9 * first


async def test_each_deck_is_told_with_what_it_took_and_all_below() -> None:
    """Usage and cost at a deck's end are those of its subtree."""

    def used(tokens: int) -> TokenCount:
        return TokenCount(input_tokens=tokens, output_tokens=0)

    files = tree("a", "b")
    files["PROMPT.md"] = root(action("a"))
    files["a/PROMPT.md"] = child(action("b", path="../b/PROMPT.md"))
    script = [
        Reply(deck="PROMPT.md", calls=(Call(name="a"),), usage=used(1)),
        Reply(deck="*/a/PROMPT.md", calls=(Call(name="b"),), usage=used(10)),
        Reply(deck="*/b/PROMPT.md", calls=RESPOND, usage=used(1000)),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND, usage=used(100)),
        Reply(deck="PROMPT.md", text="Done.", usage=used(10_000)),
    ]
    async with stage(files, script, RunOptions(prices=PRICES)) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        ends = [e for e in on.sink.events if isinstance(e, DeckEnd)]
    found = {e.deck_path: e.usage.total_tokens if e.usage else 0 for e in ends}
    assert found == {"b/PROMPT.md": 1000, "a/PROMPT.md": 1110, "PROMPT.md": 11_111}
    costs = {e.deck_path: e.cost for e in ends}
    assert costs == {
        deck: pytest.approx(tokens / 10_000) for deck, tokens in found.items()
    }


MODELS = tuple(f"scripted/{name}" for name in "abcde")
ALL_PRICED = dict.fromkeys(MODELS, PRICES["scripted/one"])


def five_models(more: str = "", most: int | None = None) -> str:
    """A deck that has four more models to ask when one fails."""
    own = "" if most is None else f"max_tokens = {most}\n"
    models = msgspec.json.encode(MODELS).decode()
    return deck_text(f"{more}\n[modelParams]\nmodel = {models}\n{own}")


@pytest.mark.parametrize("most", [None, 200])
async def test_what_a_cut_answer_has_used_is_taken_for_all_it_might(
    most: int | None,
) -> None:
    """Nobody tells what a cut stream cost: five of them stay within one budget."""
    said: list[int] = []

    def model(request: CreateResponse, _context: ModelContext) -> Reply:
        words = request.max_output_tokens or 0
        said.append(words)
        # Half of what a reply says goes out before it is cut.
        return Reply(text="so " * 2 * words, fault="cut")

    options = RunOptions(prices=ALL_PRICED)
    files = {"PROMPT.md": five_models(budget(1000), most)}
    async with stage(files, model, options) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "max_tokens"
    assert sum(said) <= 1000
    assert result.cost is None


async def test_what_a_hung_answer_has_used_is_taken_for_all_it_might(
    autojump_clock: MockClock,
) -> None:
    """After a stream that hung until the deadline its share of the run is gone."""
    script = [Reply(turn=1, text="Well, I think", fault="hang"), Reply(text="Hello.")]
    options = RunOptions(limits=Limits(max_tokens=1000), prices=PRICES)
    files = {"PROMPT.md": root("[guardrails]\ntimeoutMs = 1000\n")}
    async with stage(files, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        async with on.runtime.open_session(loaded) as session:
            hung = await session.send("Hi.")
            after = await session.send("And now?")
    assert (hung.failure and hung.failure.code) == "timeout"
    assert (after.failure and after.failure.code) == "max_tokens"
    assert hung.cost is None


class Silent:
    """A model that never tells what an answer has cost."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.allowed: list[int | None] = []
        self._inner = ScriptedProvider(replies)

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer without usage."""
        self.allowed.append(request.max_output_tokens)
        response = await self._inner.responses(request, context, on_event)
        return msgspec.structs.replace(response, usage=None)


async def test_an_answer_without_usage_is_taken_for_all_it_might_have_used() -> None:
    """A provider that counts nothing does not get past a limit."""
    model = Silent([Reply(calls=(Call(name="crm"),), times=0)])
    most = "max_tokens = 200\n"
    text = deck_text(
        f'{budget(3000)}{TOOL}[modelParams]\nmodel = "scripted/one"\n{most}'
    )
    options = RunOptions(prices=PRICES)
    async with stage({"PROMPT.md": text}, model, options) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        told = [notice.message for notice in on.sink.of(ModelNotice)]
    assert result.failure is not None
    assert result.failure.code == "max_tokens"
    assert "count for answers that did not say" in result.failure.message
    assert "did not say how many tokens it used" in told[0]
    assert len(told) == len(model.allowed) > 1
    assert sum(most or 10**9 for most in model.allowed) <= 3000
    assert result.cost is None


async def test_a_model_that_refuses_at_once_costs_nothing() -> None:
    """An error before anything was said leaves the budget, and the cost, as it was."""
    used = TokenCount(input_tokens=100, output_tokens=10)
    allowed: list[int] = []

    def model(request: CreateResponse, _context: ModelContext) -> Reply:
        allowed.append(request.max_output_tokens or 0)
        if len(allowed) < len(MODELS):
            return Reply(fault="error", message="Overloaded.")
        return Reply(text="Hello.", usage=used)

    options = RunOptions(prices=ALL_PRICED)
    async with stage({"PROMPT.md": five_models(budget(1000))}, model, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    assert len(set(allowed)) == 1
    assert result.usage.total_tokens == 110
    assert result.cost == pytest.approx(0.02)


@pytest.mark.parametrize("fault", ["cut", "hang"])
async def test_a_budget_knows_after_a_restart_what_was_lost(
    fault: str, autojump_clock: MockClock
) -> None:
    """What a broken answer may have used is gone for the next process, too."""
    said: list[int] = []

    def model(request: CreateResponse, _context: ModelContext) -> Reply:
        said.append(request.max_output_tokens or 0)
        return Reply(text="so " * 2 * said[-1], fault=fault)  # type: ignore[arg-type]  # a parameter

    options = RunOptions(limits=Limits(max_tokens=1000), prices=PRICES)
    text = deck_text(
        "[guardrails]\ntimeoutMs = 1000\n"
        '[modelParams]\nmodel = "scripted/one"\nmax_tokens = 300\n'
    )
    async with stage({"PROMPT.md": text}, model, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        run_id = (await on.runtime.try_run(loaded, message="Hi.")).run_id
        for _ in range(5):
            async with on.runtime.reopen_session(run_id) as session:
                result = await session.send("And now?")
    assert result.failure is not None
    assert result.failure.code == "max_tokens"
    assert 300 < sum(said) <= 1000
    assert result.cost is None


async def test_a_budget_knows_after_a_restart_what_a_failover_lost() -> None:
    """The first model broke off, the second answered: both count, before and after."""

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        if request.model == MODELS[0]:
            return Reply(text="so " * 500, fault="cut")
        used = TokenCount(input_tokens=10, output_tokens=10)
        return Reply(text="Hello.", usage=used)

    options = RunOptions(limits=Limits(max_tokens=1000), prices=ALL_PRICED)
    files = {"PROMPT.md": five_models(most=500)}
    async with stage(files, model, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        async with on.runtime.reopen_session(result.run_id) as session:
            again = await session.send("And now?")
    assert result.usage.total_tokens == 20
    assert (again.failure and again.failure.code) == "max_tokens"


async def test_an_answer_without_usage_is_lost_for_the_next_process_too() -> None:
    """A provider that counts nothing does not get past a limit by a restart."""
    model = Silent([Reply(text="Hello.", times=0)])
    most = '[modelParams]\nmodel = "scripted/one"\nmax_tokens = 400\n'
    options = RunOptions(prices=PRICES, limits=Limits(max_tokens=1000))
    async with stage({"PROMPT.md": deck_text(most)}, model, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        for _ in range(5):
            async with on.runtime.reopen_session(result.run_id) as session:
                result = await session.send("And now?")
    assert (result.failure and result.failure.code) == "max_tokens"
    assert sum(most or 10**9 for most in model.allowed) <= 1000
