"""Where decks lie on a disk is nobody's business but that of whoever runs them."""

import json
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.ports import ModelContext
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.codec import encode_event
from gambit_actors.trace.events import DeckEnd, DeckStart
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    action,
    calls,
    child,
    execute,
    items_in,
    outputs_of,
    root,
    stage,
)

RESPOND = calls("gambit_respond", payload={}).calls
CODE = """
from gambit_actors import define_deck

async def run(ctx):
    return {"found": await ctx.spawn_and_wait("below/PROMPT.md", {})}

deck = define_deck(run=run)
"""
ACTIONS = (
    action("a")
    + action("near", path="../near/PROMPT.md")
    + action("far", path="../../far/PROMPT.md")
    + execute("code")
    + execute("lost")
)
HANDLER = '[handlers.onError]\npath = "h/PROMPT.md"\n'
ALLOWED = "[permissions]\nread = true\nwrite = true\n"
BODY = "Be kind. ![more](./more.md)"
FILES = {
    "shop/desk/PROMPT.md": root(ACTIONS + TOOL + HANDLER + ALLOWED, BODY),
    "shop/desk/more.md": "Say more.",
    "shop/desk/a/PROMPT.md": child(TOOL),
    "shop/desk/below/PROMPT.md": child(),
    "shop/desk/h/PROMPT.md": child(),
    "shop/desk/code.py": CODE,
    "shop/desk/lost.py": CODE.replace("below/", "none/"),
    "shop/desk/notes.txt": "Noted.",
    "shop/desk/any.json": ANYTHING,
    "shop/near/PROMPT.md": child(),
    "shop/any.json": ANYTHING,
    "far/PROMPT.md": child(),
    "any.json": ANYTHING,
}
EDIT: JSONValue = [{"old_text": "gone", "new_text": "there"}]
PATHS: list[dict[str, JSONValue]] = [{"path": name} for name in ("notes.txt", "none")]
USES = (
    *(
        Call(name=name)
        for name in ("a", "near", "far", "code", "lost", "crm", "nothing")
    ),
    *(Call(name="read_file", arguments=path) for path in PATHS),
    *(Call(name="list_dir", arguments=path) for path in PATHS),
    *(Call(name="grep_files", arguments={**path, "query": "N"}) for path in PATHS),
    *(Call(name="apply_patch", arguments={**path, "edits": EDIT}) for path in PATHS),
)
SHOWN = {
    *("desk/PROMPT.md", "desk/a/PROMPT.md", "desk/below/PROMPT.md"),
    *("desk/h/PROMPT.md", "near/PROMPT.md"),
    "PROMPT.md",  # One that is above the folder that the root's is in.
}


async def raising(_call: ExternalCall) -> JSONValue:
    """A tool that does not work."""
    await trio.lowlevel.checkpoint()
    raise ValueError


@pytest.mark.slow
async def test_no_model_and_no_trace_is_told_where_the_decks_are(
    tmp_path: Path,
) -> None:
    """Of a root that is named by its absolute path its own folder is shown at most."""
    hidden = tmp_path / "hidden"
    for path, text in FILES.items():
        (hidden / path).parent.mkdir(parents=True, exist_ok=True)
        (hidden / path).write_text(text)
    asked: list[str] = []

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        asked.append(msgspec.json.encode(request).decode())
        if context.deck == "desk/PROMPT.md":
            is_first = context.pass_number == 1
            return Reply(calls=USES) if is_first else Reply(text="Done.")
        is_clerk = (context.deck, context.pass_number) == ("desk/a/PROMPT.md", 1)
        return calls("crm") if is_clerk else Reply(calls=RESPOND)

    options = RunOptions(on_tool=raising, unconfined=frozenset({"code", "lost"}))
    async with stage(DiskReader(), model, options) as on:
        deck = str(hidden / "shop" / "desk" / "PROMPT.md")
        result = await on.runtime.run(deck, message="Hi.")
        told = [encode_event(event).decode() for event in on.sink.events]
        begun = {event.deck_path for event in on.sink.of(DeckStart)}
        ended = {event.deck_path for event in on.sink.of(DeckEnd)}
        logs = [items_in(log.entries) for log in on.store.logs.values()]
    assert result.text == "Done."
    assert begun == ended == SHOWN
    assert len(asked) > len(SHOWN)
    outputs = outputs_of(result.items)
    assert {name: len(texts) for name, texts in outputs.items()} == {
        **dict.fromkeys(("a", "near", "far", "code", "lost", "crm", "nothing"), 1),
        **dict.fromkeys(("read_file", "list_dir", "grep_files", "apply_patch"), 2),
        "gambit_complete": 5,
    }
    assert '"deckPath":"desk/PROMPT.md"' in outputs["code"][0]
    assert '"found":{}' in outputs["code"][0]
    assert "Noted." in outputs["read_file"][0]
    assert json.loads(outputs["lost"][0])["message"] == (
        "none/PROMPT.md:1:1: There is no deck at none/PROMPT.md. [GD001]"
    )
    said = msgspec.json.encode(logs).decode()
    for text in (*asked, *told, said):
        assert "hidden" not in text
        assert str(tmp_path.parent) not in text


@pytest.mark.parametrize("kind", ["onIdle", "onError"])
async def test_no_handler_is_told_where_its_deck_is(
    kind: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Neither when nothing happens nor when the model of the deck fails."""
    hidden = tmp_path / "hidden"
    (hidden / "h").mkdir(parents=True)
    handler = f'[handlers.{kind}]\npath = "h/PROMPT.md"\n'
    (hidden / "PROMPT.md").write_text(root(handler))
    (hidden / "h" / "PROMPT.md").write_text(root())
    fails = Reply(fault="error")
    waits = Reply(latency_seconds=1, text="Done.")
    script = [
        Reply(deck="*h/PROMPT.md", text="One moment."),
        fails if kind == "onError" else waits,
    ]
    async with stage(DiskReader(), script) as on:
        loaded = await on.runtime.load(str(hidden / "PROMPT.md"))
        await on.runtime.try_run(loaded, message="Hi.")
        (log,) = on.entries_of("hidden/h/PROMPT.md")
    (given,) = outputs_of(items_in(log))["gambit_context"]
    assert json.loads(given)["source"] == {"deckPath": "hidden/PROMPT.md"}
