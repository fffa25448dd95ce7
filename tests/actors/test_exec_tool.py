"""Programs run for a model: which, where, with what, how long, and then gone."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from gambit_actors.actors import exec_tool
from gambit_actors.actors.builtin_tools import use_builtin
from gambit_actors.deck.permissions import NOTHING, Permissions, RunAccess
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.run.builtins import BUILTIN_TOOLS
from gambit_actors.run.calls import BuiltinCall
from gambit_actors.run.envelopes import Envelope

EXEC = next(tool for tool in BUILTIN_TOOLS if tool.name == "exec")
PYTHON = str(Path(sys.executable).resolve())
SHELL = Permissions(run=RunAccess(commands=("sh",)))
DENIED: tuple[float | None, str | None] = (403, "permission_denied")


async def run(
    folder: Path, permissions: Permissions = SHELL, **arguments: JSONValue
) -> Envelope:
    """Run a program as a model does."""
    call = FunctionCall(call_id="call_1", name="exec", arguments="{}")
    planned = BuiltinCall(call=call, tool=EXEC, arguments=arguments)
    return await use_builtin(planned, permissions, folder=str(folder))


async def shell(folder: Path, script: str, **more: JSONValue) -> Envelope:
    """Run a shell script."""
    return await run(folder, command="sh", args=["-c", script], **more)


def problem(envelope: Envelope) -> tuple[float | None, str | None]:
    """The status and code of a refusal."""
    return envelope.status, envelope.code


def is_alive(pid: int) -> bool:
    """Whether a process is at work; one that only waits for its parent is not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def open_files() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(is_true: Callable[[], bool]) -> None:
    """Wait for something that other processes do, and that nobody tells us of."""
    with trio.fail_after(5):
        await trio.lowlevel.checkpoint()
        while not is_true():  # noqa: ASYNC110
            await trio.sleep(0.005)


async def pids_in(path: Path, count: int) -> list[int]:
    """Wait for a script to have written the ids of its processes."""

    def written() -> list[int]:
        text = path.read_text() if path.exists() else ""
        return [int(word) for word in text.split()] if text.endswith("\n") else []

    await until(lambda: len(written()) == count)
    return written()


async def wait_gone(*pids: int) -> None:
    """Wait for processes that were killed; the kernel may take a moment."""
    await until(lambda: not any(map(is_alive, pids)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The deck's folder, with no links on its way."""
    path = tmp_path.resolve() / "deck"
    path.mkdir()
    return path


async def test_a_program_is_run_and_told_about(tmp_path: Path) -> None:
    """What it printed, how it ended, and what was asked for."""
    script = "echo out; echo err >&2; exit 3"

    envelope = await shell(tmp_path, script)

    assert envelope.status is None
    assert envelope.payload == {
        "command": "sh",
        "args": ["-c", script],
        "cwd": ".",
        "code": 3,
        "success": False,
        "stdout": "out\n",
        "stderr": "err\n",
    }


async def test_arguments_are_not_for_a_shell(tmp_path: Path) -> None:
    """What means something to a shell arrives as it is."""
    allowed = Permissions(run=RunAccess(commands=("printf",)))
    word = "$(id); `id` * | cat"

    envelope = await run(tmp_path, allowed, command="printf", args=["%s", word])

    assert envelope.payload["stdout"] == word
    assert envelope.payload["success"] is True


async def test_there_is_nothing_to_read(tmp_path: Path) -> None:
    """A program that reads its input finds the end of it."""
    assert (await shell(tmp_path, "cat; echo end")).payload["stdout"] == "end\n"


async def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    """A program that was killed tells by which signal."""
    payload = (await shell(tmp_path, "kill -TERM $$")).payload

    assert (payload["code"], payload["success"]) == (-signal.SIGTERM, False)


@pytest.mark.parametrize("command", ["ls", "sh ", "/bin/sh", "./sh", "../sh", "", "."])
async def test_only_the_very_name_is_allowed(tmp_path: Path, command: str) -> None:
    """A name grants neither other names nor a path that ends in it."""
    (tmp_path / "sh").symlink_to("/bin/sh")

    assert problem(await run(tmp_path, command=command)) == DENIED


async def test_nothing_granted_is_nothing_run(tmp_path: Path) -> None:
    """Without a grant no program is run, there or not."""
    assert problem(await run(tmp_path, NOTHING, command="sh")) == DENIED
    assert problem(await run(tmp_path, NOTHING, command="no-such")) == DENIED


def program(path: Path, text: str = "#!/bin/sh\necho ran\n") -> Path:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
    return path


async def test_a_path_is_allowed_by_where_it_leads(folder: Path) -> None:
    """Links are followed first: a link to a program is that program, and no other."""
    granted = program(folder / "granted")
    other = program(folder / "other")
    (folder / "good").symlink_to(granted)
    (folder / "bad").symlink_to(other)
    allowed = Permissions(run=RunAccess(paths=(str(granted),)))

    for command in ("./granted", str(granted), "./good"):
        payload = (await run(folder, allowed, command=command)).payload
        assert payload["stdout"] == "ran\n"
    for command in ("./other", "./bad", "granted"):
        assert problem(await run(folder, allowed, command=command)) == DENIED


async def test_a_command_is_not_found_in_the_folder_or_by_our_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are looked up in the system's folders, whatever PATH says."""
    program(tmp_path / "gambit-test-command")
    monkeypatch.setenv("PATH", str(tmp_path))
    allowed = Permissions(run=True, env=True)

    envelope = await run(tmp_path, allowed, command="gambit-test-command")

    assert problem(envelope) == (404, "not_found")


async def test_a_granted_program_may_be_missing(tmp_path: Path) -> None:
    """A path with no program, or one that is none, is told as missing."""
    (tmp_path / "plain").write_text("text")
    allowed = Permissions(run=True)

    for command in ("./missing", "./plain", "/", "."):
        envelope = await run(tmp_path, allowed, command=command)
        assert problem(envelope) == (404, "not_found")


async def test_a_program_that_cannot_start_is_an_answer(tmp_path: Path) -> None:
    """A script whose interpreter is missing does not end the run."""
    program(tmp_path / "broken", "#!/no/such/interpreter\n")

    envelope = await run(tmp_path, Permissions(run=True), command="./broken")

    assert problem(envelope) == (500, "exec_failed")
    assert str(tmp_path) not in (envelope.message or "")


async def test_a_nul_is_refused(tmp_path: Path) -> None:
    """No argument of a program can have a NUL in it."""
    envelope = await run(tmp_path, command="sh", args=["a\0b"])

    assert problem(envelope) == (400, "invalid_input")


async def test_a_program_sees_granted_variables_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a plain PATH and LANG, what is granted, and no more."""
    monkeypatch.setenv("GAMBIT_SHOWN", "yes")
    monkeypatch.setenv("GAMBIT_SECRET", "no")
    allowed = Permissions(run=RunAccess(commands=("env",)), env=("GAMBIT_SHOWN",))

    payload = (await run(tmp_path, allowed, command="env")).payload

    assert sorted(payload["stdout"].splitlines()) == [
        "GAMBIT_SHOWN=yes",
        "LANG=C.UTF-8",
        f"PATH={exec_tool.PATH}",
    ]


async def test_where_a_program_runs_must_be_readable(folder: Path) -> None:
    """The deck's own folder needs no grant; any other does, links followed."""
    granted, other = folder.parent / "granted", folder.parent / "other"
    granted.mkdir()
    other.mkdir()
    (folder / "link").symlink_to(other)
    allowed = Permissions(run=True, read=(str(granted),))

    async def pwd(**where: str) -> Envelope:
        return await run(folder, allowed, command="pwd", **where)

    assert (await pwd()).payload["stdout"] == f"{folder}\n"
    assert (await pwd(cwd=".")).payload["stdout"] == f"{folder}\n"
    assert (await pwd(cwd="../granted")).payload["stdout"] == f"{granted}\n"
    assert (await pwd(cwd="../granted")).payload["cwd"] == "../granted"
    assert problem(await pwd(cwd="../other")) == DENIED
    assert problem(await pwd(cwd="link")) == DENIED
    assert problem(await pwd(cwd="../granted/missing")) == (404, "not_found")


async def test_output_is_cut_but_read_to_the_end(tmp_path: Path) -> None:
    """A program that prints too much runs on, and the start of it is kept."""
    script = "head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2"

    payload = (await shell(tmp_path, script)).payload

    assert payload["stdout"] == "x" * 65_536
    assert (payload["stderr"], payload["code"]) == ("end\n", 0)
    assert payload["truncated"] is True


def test_output_is_counted_in_characters() -> None:
    """Characters of several bytes are kept whole; odd bytes are marked."""
    kept = exec_tool.Kept(3)
    for byte in "äö€𝄞".encode():
        kept.feed(bytes([byte]))
    odd = exec_tool.Kept(3)
    odd.feed(b"a\xff")

    assert (kept.text, kept.is_cut) == ("äö€", True)
    assert (odd.text, odd.is_cut) == ("a\ufffd", False)


@pytest.mark.slow
async def test_a_program_has_its_time_and_no_more(tmp_path: Path) -> None:
    """At its limit it is killed with all it started; what it printed is told."""
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 60 & echo $$ $! > {pids}; echo begun; wait"

    envelope = await shell(tmp_path, script, timeout_ms=500)

    assert problem(envelope) == (504, "timeout")
    assert envelope.payload["code"] is None
    assert envelope.payload["stdout"] == "begun\n"
    await wait_gone(*await pids_in(pids, 2))


async def test_a_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    """When the run is cancelled, the program and its children are gone, and waited for.

    The program itself is not even a zombie by the time that the cancelling is over.
    """
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 60 & echo $$ $! > {pids}; wait"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(shell, tmp_path, script)
        head, child = await pids_in(pids, 2)
        assert is_alive(head)
        assert is_alive(child)
        nursery.cancel_scope.cancel()

    with pytest.raises(ProcessLookupError):
        os.kill(head, 0)
    await wait_gone(child)


async def test_what_a_program_leaves_behind_is_killed(tmp_path: Path) -> None:
    """When a program ends, what it left running in its group ends too, at once."""
    pids = tmp_path / "pids"

    with trio.fail_after(4):
        envelope = await shell(tmp_path, f"sleep 60 & echo $! > {pids}; echo done")

    assert envelope.payload["stdout"] == "done\n"
    await wait_gone(*await pids_in(pids, 1))


@pytest.mark.slow
async def test_one_that_left_the_group_is_not_waited_for(tmp_path: Path) -> None:
    """A process of another session may hold our pipes; the answer does not wait."""
    pids = tmp_path / "pids"
    code = (
        "import subprocess as s;"
        "p = s.Popen(['sleep', '60'], start_new_session=True);"
        f"open({str(pids)!r}, 'w').write(str(p.pid) + chr(10)); print('done')"
    )
    allowed = Permissions(run=RunAccess(paths=(PYTHON,)))

    with trio.fail_after(4):
        envelope = await run(tmp_path, allowed, command=PYTHON, args=["-Sc", code])

    (escaped,) = await pids_in(pids, 1)
    os.kill(escaped, signal.SIGKILL)
    assert envelope.payload["stdout"] == "done\n"


async def test_programs_leave_no_open_files(tmp_path: Path) -> None:
    """Nothing of a run stays open here, whether it ended, was stopped or refused."""
    await shell(tmp_path, "true")
    before = open_files()

    for script, timeout_ms in [("true", 5000), ("sleep 60", 20)]:
        await shell(tmp_path, script, timeout_ms=timeout_ms)
        await run(tmp_path, command="no-such")

    assert open_files() == before


@pytest.mark.parametrize("write", [".", "..", "PROMPT.md", "code.py", True])
async def test_no_program_for_a_deck_that_may_write_itself(
    folder: Path, write: str | bool
) -> None:
    """A program could lift what binds it; a grant for a folder below is no harm."""
    commands = RunAccess(commands=("sh",))
    grant = write if isinstance(write, bool) else (os.path.realpath(folder / write),)  # noqa: ASYNC240
    below = Permissions(run=commands, write=(f"{folder}/data",))

    async def tried(permissions: Permissions) -> Envelope:
        call = FunctionCall(call_id="call_1", name="exec", arguments="{}")
        planned = BuiltinCall(call=call, tool=EXEC, arguments={"command": "sh"})
        return await use_builtin(
            planned,
            permissions,
            folder=str(folder),
            sources=lambda: {f"{folder}/code.py"},
        )

    refused = await tried(Permissions(run=commands, write=grant))

    assert problem(refused) == DENIED
    assert "grant a folder below" in (refused.message or "")
    assert not (await tried(below)).is_error
