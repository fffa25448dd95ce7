"""A process is killed in the middle of a tool call; another one goes on with its run.

Run it:  .venv/bin/python examples/05_kill_and_resume.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import trio

import gambit_actors as gambit
from gambit_actors.errors import InDoubt
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripts import Call, Reply

TOOL = '[[tools]]\nname = "{0}"\ndescription = "{0}."\n'
DECK = f"+++\n{TOOL.format('look_up')}{TOOL.format('pay')}+++\nRefund.\n"
SCRIPT = [
    Reply(pass_number=1, calls=(Call(name="look_up"),), times=0),
    Reply(pass_number=2, calls=(Call(name="pay"),), times=0),
    Reply(pass_number=3, text="You get your money back.", times=0),
]


async def on_tool(call: gambit.ExternalCall) -> JSONValue:
    """Say what is done; the first payment takes for ever."""
    print(f"{call.name}, attempt {call.attempt}", flush=True)
    await trio.sleep(3600 if (call.name, call.attempt) == ("pay", 1) else 0)
    return {"done": True}


async def work(folder: Path, run_id: str = "") -> None:
    """Begin a run or, if there is one, go on with it."""
    model, reader = gambit.ScriptedProvider(SCRIPT), gambit.DiskReader()
    options = gambit.RunOptions(on_tool=on_tool, models=("scripted/model",))
    async with (
        gambit.DiskStore(folder / "runs") as store,
        gambit.open_runtime(model, reader=reader, store=store, options=options) as rt,
    ):
        try:
            await (rt.resume(run_id) if run_id else rt.run(folder, message="It broke."))
        except InDoubt as problem:  # Somebody has looked: nothing was paid.
            (doubt,) = problem.doubts
            print("in doubt:", doubt.name)
            print((await rt.resume(run_id, answers={doubt.key: "retry"})).text)


if len(sys.argv) > 1:
    trio.run(work, Path(sys.argv[1]))  # Is killed in this.
with tempfile.TemporaryDirectory() as temporary:
    Path(temporary, "PROMPT.md").write_text(DECK)
    child = [sys.executable, __file__, temporary]
    with subprocess.Popen(child, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        for _, line in zip(range(2), process.stdout or (), strict=False):
            print("child:", line, end="")
        process.kill()  # SIGKILL: it has no chance to tidy up.
    trio.run(work, Path(temporary), next(Path(temporary, "runs").glob("*.jsonl")).stem)
