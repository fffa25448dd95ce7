"""A conversation that comes to the same end wherever it is cut: decks, tools, a model.

The model remembers nothing: it asks for what it has not been given, and for what nobody
knows the outcome of once more. Tools give the same whenever they are asked the same. So
what a conversation comes to is known beforehand, however often it was interrupted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias
from zlib import crc32

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.ports import ModelContext
from tests.actors.playing import ANYTHING, action, child, execute, root

Choice: TypeAlias = Literal["ask", "retry", "fail"]
Wanted: TypeAlias = tuple[str, int]
"""A tool, and the one argument it is called with."""

LATENCY_SECONDS = 0.003
# More than a page, so that the system can be stopped in the middle of a write.
BULK = "0123456789abcdef" * 2000
ADVICE: JSONValue = {"advice": "later"}
FOREVER = "\n[guardrails]\nmaxPasses = 100\n"


# The decks, and what they are asked


def tools(choice: Choice, *names: str) -> str:
    """Tools, and what is to be done when they are in doubt."""
    return "".join(
        f'[[tools]]\nname = "{name}"\ndescription = "Do."\nonDoubt = "{choice}"\n'
        'inputSchema = "INPUT"\n'
        for name in names
    )


def write_decks(folder: Path, of_tools: Choice, of_actions: Choice) -> None:
    """Write a root, decks below it to a depth of two, handlers and code."""
    both = tools(of_tools, "left", "right")
    more = f'onDoubt = "{of_actions}"\n'
    handlers = "".join(
        f'[handlers.{key}]\npath = "{name}/PROMPT.md"\n{when}'
        for key, name, when in (
            ("onBusy", "busy", "delayMs = 4\nrepeatMs = 20\n"),
            ("onIdle", "idle", "delayMs = 2\nrepeatMs = 20\n"),
            ("onError", "error", ""),
        )
    )
    own = action("middle", more=more) + execute("code") + more
    broken = tools(of_tools, "broken")
    texts = {
        "PROMPT.md": root(own + both + broken + handlers + FOREVER),
        "middle/PROMPT.md": child(action("deep", more=more) + both + FOREVER),
        "middle/deep/PROMPT.md": child(both + FOREVER).replace("../", "../../"),
        "leaf/PROMPT.md": child(both + FOREVER),
        "busy/PROMPT.md": root(),
        "idle/PROMPT.md": root(),
        "error/PROMPT.md": child(),
        "any.json": ANYTHING,
        "code.py": CODE,
    }
    for name, text in texts.items():
        path = folder / "decks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = "../" * name.count("/") + "any.json"
        path.write_text(text.replace("INPUT", schema))


CODE = """\
import os
from pathlib import Path
from gambit_actors import define_deck

LEDGER = Path(__file__).parent.parent / "ledger"

def note(ctx, what):
    line = f"{ctx.idempotency_key} {ctx.attempt} {what}\\n"
    ledger = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, line.encode())
    os.close(ledger)

async def run(ctx):
    note(ctx, "begin")
    first = ctx.input["n"] * 10
    asked = [("leaf/PROMPT.md", {"n": first + n}) for n in (1, 2)]
    given = await ctx.spawn_all(asked)
    given.append(await ctx.spawn_and_wait("leaf/PROMPT.md", {"n": first + 3}))
    note(ctx, "end")
    return {"given": given}

deck = define_deck(run=run)
"""

STAGES: dict[str, list[list[Wanted]]] = {
    "PROMPT.md": [
        [("left", 1), ("right", 2), ("middle", 3)],
        [("code", 4), ("left", 5)],
        [("broken", 6)],
    ],
    "middle/PROMPT.md": [[("left", 1), ("deep", 2), ("right", 3)], [("left", 4)]],
    "deep/PROMPT.md": [[("left", 1), ("right", 2)]],
    "leaf/PROMPT.md": [[("left", 1), ("right", 2)]],
}
SECOND_TURN: list[list[Wanted]] = [[("right", 7), ("left", 8)], [("middle", 9)]]


def stages_of(deck: str, turn: int, given: int) -> list[list[Wanted]]:
    """What a deck's model asks for in a turn, in which order."""
    if turn > 1:
        return SECOND_TURN
    key = next(k for k in sorted(STAGES, key=len, reverse=True) if deck.endswith(k))
    return [[(name, given * 10 + n) for name, n in stage] for stage in STAGES[key]]


def value_of(name: str, n: int) -> JSONValue:
    """What a call gives: this is also what somebody finds who looks afterwards."""
    match name:
        case "broken":
            return ADVICE
        case "code":
            return {"given": [value_of("leaf", n * 10 + m) for m in (1, 2, 3)]}
        case "left":
            return {"left": n}
        case "right":
            return {"right": n, "bulk": BULK}
        case _:
            wanted = [
                w for stage in stages_of(f"{name}/PROMPT.md", 1, n) for w in stage
            ]
            return {"said": said(wanted)}


def said(wanted: Iterable[Wanted]) -> str:
    """What a model has to say of what it was given, in short."""
    return " ".join(f"{name}({n})={digest(value_of(name, n))}" for name, n in wanted)


def digest(value: JSONValue) -> str:
    """A value in few letters."""
    return f"{crc32(msgspec.json.encode(value, order='sorted')):08x}"


# The model


def reply(request: CreateResponse, context: ModelContext) -> Reply:
    """Ask for what is missing of the first stage that lacks something, or answer."""
    for name in ("busy", "idle"):
        if f"{name}/" in context.deck:
            return Reply(text=f"{name}.", latency_seconds=LATENCY_SECONDS)
    if "error/" in context.deck:
        return responding(ADVICE, status=503)
    calls, outputs, given = heard(request)
    stages = stages_of(context.deck, context.turn, given)
    known = known_from(calls, outputs)
    for stage in stages:
        missing = [wanted for wanted in stage if wanted not in known]
        if missing:
            return asking(missing)
    wanted = [w for stage in stages for w in stage]
    words = " ".join(f"{name}({n})={digest(known[name, n])}" for name, n in wanted)
    if context.deck != "PROMPT.md":
        return responding({"said": words})
    return Reply(text=words, latency_seconds=LATENCY_SECONDS)


def known_from(
    calls: Sequence[FunctionCall], outputs: Mapping[str, str]
) -> dict[Wanted, JSONValue]:
    """What calls have given, without those that nobody knows the outcome of."""
    known: dict[Wanted, JSONValue] = {}
    for call in calls:
        envelope = json.loads(outputs[call.call_id])
        if envelope.get("code") != "in_doubt":
            known[call.name, json.loads(call.arguments)["n"]] = envelope.get("payload")
    return known


def heard(
    request: CreateResponse,
) -> tuple[list[FunctionCall], dict[str, str], int]:
    """What was asked for so far in this turn, what came of it, and the context."""
    calls: list[FunctionCall] = []
    outputs: dict[str, str] = {}
    given, hidden = 0, ""
    for item in request.input or ():
        match item:
            case FunctionCall(name="gambit_context"):
                hidden = item.call_id
            case FunctionCall(name=name) if not name.startswith("gambit_"):
                calls.append(item)
            case FunctionCallOutput(call_id=call_id) if call_id == hidden:
                given = json.loads(str(item.output))["n"]
            case FunctionCallOutput():
                outputs[item.call_id] = str(item.output)
            case Message(role="user"):
                calls.clear()
            case _:
                pass
    return calls, outputs, given


def asking(wanted: Sequence[Wanted]) -> Reply:
    """Call these."""
    calls = tuple(Call(name=name, arguments={"n": n}) for name, n in wanted)
    return Reply(calls=calls, latency_seconds=LATENCY_SECONDS)


def responding(payload: JSONValue, **more: JSONValue) -> Reply:
    """Give a result."""
    arguments = {"payload": payload, **more}
    call = Call(name="gambit_respond", arguments=arguments)
    return Reply(calls=(call,), latency_seconds=LATENCY_SECONDS)
