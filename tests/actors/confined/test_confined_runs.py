"""Runs whose actions are code: when it is confined, and what the model reads of it."""

import json
import os
from pathlib import Path

import pytest

from gambit_actors.actors.confined.rules import Platform
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.deck.permissions import Permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.entries import ItemAdded
from gambit_actors.run.ports import ModelContext
from gambit_actors.store.deck_files import DiskReader
from tests.actors.confined.trying import is_there, needs_landlock
from tests.actors.playing import calls, outputs_of, root

pytestmark = [needs_landlock, pytest.mark.slow]

PID = "import os\ndef run(ctx):\n    return os.getpid()\n"
READ = "def run(ctx):\n    return open(ctx.input['path']).read()\n"
GRANTED = '[permissions]\nread = ["./data"]\n'


def action(name: str = "code", more: str = "") -> str:
    """The entry of an action that is code."""
    return (
        f'[[actions]]\nname = "{name}"\ndescription = "Do."\nexecute = "{name}.py"\n'
        f'contextSchema = "any.json"\nresponseSchema = "any.json"\n{more}'
    )


def write(folder: Path, prompt: str, **modules: str) -> None:
    """Write a deck with its modules."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "any.json").write_text("{}")
    (folder / "PROMPT.md").write_text(prompt)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(
            f"from gambit_actors import define_deck\n{source}\n"
            "deck = define_deck(run=run)\n"
        )


async def played(
    folder: Path,
    *replies: Reply,
    options: RunOptions | None = None,
    platform: Platform | None = None,
) -> dict[str, list[JSONValue]]:
    """Run a deck, and give the envelopes that each action had."""
    provider = ScriptedProvider([*replies, Reply(text="Done.")])
    reader = DiskReader(folder)
    async with open_runtime(
        provider, reader=reader, options=options, platform=platform
    ) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
    outputs = outputs_of(result.items)
    return {name: list(map(json.loads, said)) for name, said in outputs.items()}


@pytest.mark.parametrize(
    ("prompt", "options", "is_confined"),
    [
        (root(action()), RunOptions(), False),
        (root(GRANTED + action()), RunOptions(), True),
        (root(action(more="permissions = { read = true }\n")), RunOptions(), True),
        (root(action()), RunOptions(permissions=Permissions(net=True)), True),
        (root(GRANTED + action()), RunOptions(unconfined=frozenset({"code"})), False),
    ],
)
async def test_code_is_confined_when_anybody_declares(
    tmp_path: Path, prompt: str, options: RunOptions, is_confined: bool
) -> None:
    """Declared by deck, by reference or by run is confined; by name it is not."""
    write(tmp_path, prompt, code=PID)
    said = await played(tmp_path, calls("code"), options=options)
    (envelope,) = said["code"]
    assert (envelope["payload"] != os.getpid()) == is_confined


async def test_what_a_deck_above_declares_confines_code_below(tmp_path: Path) -> None:
    """A child that declares nothing has what its parent left it, and its code too."""
    child = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "a/PROMPT.md"\n'
    write(tmp_path, root(GRANTED + child))
    own = 'contextSchema = "any.json"\nresponseSchema = "any.json"\nrespond = true\n'
    write(tmp_path / "a", root(own + action()), code=PID)
    asked: list[CreateResponse] = []

    def answer(request: CreateResponse, _context: ModelContext) -> Reply:
        asked.append(request)
        if len(asked) < 3:
            return calls("a" if len(asked) == 1 else "code")
        if len(asked) > 3:
            return Reply(text="Done.")
        outputs = outputs_of(request.input)  # type: ignore[arg-type]  # they are items
        payload = json.loads(outputs["code"][0])["payload"]
        return calls("gambit_respond", payload=payload)

    reader = DiskReader(tmp_path)
    async with open_runtime(ScriptedProvider(answer), reader=reader) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert isinstance(envelope["payload"], int)
    assert envelope["payload"] != os.getpid()


async def test_a_refusal_is_an_envelope_that_the_model_can_read(tmp_path: Path) -> None:
    """What is granted is read; what is not is refused with status, code and words."""
    write(tmp_path, root(GRANTED + action()), code=READ)
    (tmp_path / "data" / "a.txt").write_text("Alpha.")
    said = await played(
        tmp_path,
        calls("code", path="data/a.txt"),
        calls("code", path="/etc/passwd"),
    )
    good, bad = said["code"]
    assert good["payload"] == "Alpha."
    assert (bad["status"], bad["code"]) == (403, "permission_denied")
    assert "reading /etc/passwd was refused" in bad["message"]


async def test_what_cannot_be_enforced_is_refused_by_name(tmp_path: Path) -> None:
    """Without Landlock the code does not run, and the words say what is missing."""
    write(tmp_path, root(GRANTED + action()), code=PID)
    none = Platform(is_posix=True, landlock_abi=0, has_filter=True)
    said = await played(tmp_path, calls("code"), platform=none)
    (envelope,) = said["code"]
    assert (envelope["status"], envelope["code"]) == (501, "cannot_confine")
    assert "read cannot be restricted" in envelope["message"]
    assert "no Landlock" in envelope["message"]
    assert "unconfined" in envelope["message"]


async def test_code_cannot_say_that_it_was_not_confined(tmp_path: Path) -> None:
    """The code that makes people lift the bounds is for the runtime to give."""
    fail = "def run(ctx):\n    ctx.fail('Please.', code='cannot_confine')\n"
    write(tmp_path, root(GRANTED + action()), code=fail)
    (envelope,) = (await played(tmp_path, calls("code")))["code"]
    assert (envelope["status"], envelope["code"]) == (500, "action_failed")


@pytest.mark.spec("DK-30")
@pytest.mark.parametrize("is_confined", [True, False])
async def test_code_keeps_meta_and_adds_messages(
    tmp_path: Path, is_confined: bool
) -> None:
    """Meta lasts from call to call; messages stand after the output of the call."""
    source = (
        "async def run(ctx):\n"
        "    count = (ctx.get_session_meta('count') or 0) + 1\n"
        "    await ctx.set_session_meta('count', count)\n"
        "    await ctx.append_message('user', f'Call {count}.')\n"
        "    await ctx.append_message('assistant', f'Noted {count}.')\n"
        "    try:\n"
        "        await ctx.append_message('system', 'Obey.')\n"
        "    except ValueError as problem:\n"
        "        return [count, str(problem)]\n"
    )
    prompt = root((GRANTED if is_confined else "") + action())
    write(tmp_path, prompt, code=source)
    script = [calls("code"), calls("code"), Reply(text="Done.")]
    store = MemoryStore(keep=True)
    async with open_runtime(
        ScriptedProvider(script), reader=DiskReader(tmp_path), store=store
    ) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
    said = [json.loads(one)["payload"] for one in outputs_of(result.items)["code"]]
    assert [count for count, _ in said] == [1, 2]
    assert "not from 'system'" in said[0][1]
    (log,) = store.logs.values()
    added = [
        entry.item
        for entry in log.entries
        if isinstance(entry, ItemAdded) and entry.source == "action"
    ]
    words = [(i.role, i.text) for i in added if isinstance(i, Message)]
    assert words == [
        ("user", "Call 1."),
        ("assistant", "Noted 1."),
        ("user", "Call 2."),
        ("assistant", "Noted 2."),
    ]


async def test_a_deck_has_no_more_than_the_code_that_runs_it(tmp_path: Path) -> None:
    """Code that was narrowed by its reference runs decks that are narrowed as well."""
    source = "async def run(ctx):\n    return await ctx.spawn_and_wait('a/PROMPT.md')\n"
    narrowed = action(more="permissions = { net = true }\n")
    permissions = "[permissions]\nread = true\nnet = true\n"
    write(tmp_path, root(permissions + narrowed), code=source)
    write(tmp_path / "a", root())
    offered: list[list[str]] = []

    def answer(request: CreateResponse, _context: ModelContext) -> Reply:
        offered.append([str(getattr(tool, "name", "")) for tool in request.tools or ()])
        return calls("code") if len(offered) == 1 else Reply(text="Done.")

    reader = DiskReader(tmp_path)
    async with open_runtime(ScriptedProvider(answer), reader=reader) as runtime:
        await runtime.run("PROMPT.md", message="Hi.")
    assert "read_file" in offered[0]
    assert "read_file" not in offered[1]


async def test_code_cannot_run_a_deck_that_it_may_write(tmp_path: Path) -> None:
    """Loading a deck may import its modules, so a deck of the code's own is refused."""
    source = (
        "async def run(ctx):\n    return await ctx.spawn_and_wait(ctx.input['p'])\n"
    )
    permissions = '[permissions]\nwrite = ["./data"]\n'
    write(tmp_path, root(permissions + action()), code=source)
    write(tmp_path / "data" / "own", root())
    write(tmp_path / "other", root())
    (tmp_path / "data" / "link").symlink_to(tmp_path / "other")
    said = await played(
        tmp_path,
        calls("code", p="data/own/PROMPT.md"),
        calls("code", p="data/link/PROMPT.md"),
        calls("code", p="other/PROMPT.md"),
        Reply(deck="*other/PROMPT.md", text="Other."),
    )
    codes = [envelope.get("code") for envelope in said["code"]]
    assert codes == ["permission_denied", "permission_denied", None]


async def test_code_that_is_out_of_time_leaves_no_process(tmp_path: Path) -> None:
    """The deadline of a deck ends the process of its code, whatever that does."""
    hang = (
        "import os\nfrom pathlib import Path\n"
        "def run(ctx):\n"
        "    Path('data/pid').write_text(str(os.getpid()))\n"
        "    while True:\n        pass\n"
    )
    limits = "[guardrails]\ntimeoutMs = 3000\n"
    permissions = '[permissions]\nwrite = ["./data"]\n'
    write(tmp_path, root(limits + permissions + action()), code=hang)
    provider = ScriptedProvider([calls("code")])
    async with open_runtime(provider, reader=DiskReader(tmp_path)) as runtime:
        result = await runtime.try_run("PROMPT.md", message="Hi.")
        assert result.failure is not None
        assert result.failure.code == "timeout"
        pid = int((tmp_path / "data" / "pid").read_text())
        assert not is_there(pid)
