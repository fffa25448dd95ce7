"""Whatever code gives, says or raises is told in words, and costs no process."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gambit_actors.actors.confined.confinement import NoProcess
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import ActionFailed
from tests.actors.confined.test_pool import PID
from tests.actors.confined.trying import bench, needs_landlock

pytestmark = [needs_landlock, pytest.mark.slow]

ODD = """
import os, sys
class Mute(Exception):
    def __str__(self):
        raise ValueError
class Base(BaseException):
    pass
def run(ctx):
    exec(ctx.input)
    return os.getpid()
"""


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("ctx.fail('\\ud800')", "action_failed", "ud800"),
        ("ctx.fail('No.', code='\\ud800')", "\\ud800", "No."),
        ("ctx.fail('No.', code=5)", "5", "No."),
        ("ctx.fail('No.', code='own', details=object())", "own", "no JSON"),
        ("ctx.fail('No.', code='own', details='\\ud800')", "own", "no JSON"),
        ("raise ValueError('\\ud800')", "action_error", "ValueError: .*ud800"),
        ("raise Mute", "action_error", "Mute"),
        ("raise GeneratorExit", "action_error", "GeneratorExit"),
        ("sys.exit(3)", "action_error", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "action_error", "KeyboardInterrupt"),
        ("raise Base('Odd.')", "action_error", "Base: Odd"),
        ("ctx.log('x', title=5)", "action_error", "TypeError: title must be a str"),
        ("ctx.log('x', meta=[])", "action_error", "TypeError: meta must be a dict"),
        ("ctx.log('\\ud800')", "action_error", "UnicodeEncodeError"),
        ("ctx.log('x', body=object())", "action_error", "TypeError"),
    ],
)
async def test_what_code_raises_is_told_in_words(
    tmp_path: Path, line: str, code: str, words: str
) -> None:
    """A failure has its code and its words, and the process takes the next call."""
    async with bench(tmp_path) as on:
        first = await on.run(ODD, given="pass")
        with pytest.raises(ActionFailed, match=words) as caught:
            await on.run(ODD, given=line)
        assert caught.value.code == code
        assert await on.run(ODD, given="pass") == first


@pytest.mark.parametrize(
    "value", ["'\\ud800'", "{'\\udfff': 1}", "[{(1, 2): 3}]", "2 ** 20000"]
)
async def test_what_is_no_json_is_an_invalid_result(tmp_path: Path, value: str) -> None:
    """A result that cannot be sent is told as one."""
    source = f"def run(ctx):\n    return ctx.input or {value}\n"
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed, match="no JSON") as caught:
            await on.run(source)
        assert caught.value.code == "invalid_result"
        assert await on.run(source, given=1) == 1


@pytest.mark.parametrize(
    "line",
    [
        "ctx.set_session_meta(5, 1)",
        "ctx.spawn_and_wait(5)",
        "ctx.spawn_and_wait('a', message=5)",
        "ctx.append_message('user', b'x')",
    ],
)
async def test_a_wrong_type_is_an_error_where_it_is_given(
    tmp_path: Path, line: str
) -> None:
    """The code that called can hear it, and go on."""
    source = (
        "async def run(ctx):\n"
        "    try:\n"
        f"        await {line}\n"
        "    except TypeError as problem:\n"
        "        return str(problem)\n"
    )
    async with bench(tmp_path) as on:
        said = await on.run(source)
        assert (on.asked.meta, on.asked.said, on.asked.spawned) == ({}, [], [])
    assert "must be a str, and not" in str(said)


async def test_a_module_that_exits_is_told(tmp_path: Path) -> None:
    """What ends an import is no end without a word."""
    source = "import sys\nsys.exit('Not here.')\ndef run(ctx):\n    pass\n"
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed, match="SystemExit: Not here") as caught:
            await on.run(source)
    assert caught.value.code == "module_error"


async def test_what_is_given_may_be_no_text(tmp_path: Path) -> None:
    """Half a pair in the input is an error by name, and not one of ours."""
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed) as caught:
            await on.run(PID, given="\ud800")
    assert caught.value.code == "invalid_input"


async def test_standard_streams_are_as_libraries_expect(tmp_path: Path) -> None:
    """They take bytes and odd text, know their encoding, and have no file."""
    source = (
        "import io, sys\n"
        "def run(ctx):\n"
        "    sys.stdout.buffer.write('Gr\\u00fc\\u00dfe\\n'.encode()[:3])\n"
        "    sys.stdout.buffer.write('Gr\\u00fc\\u00dfe\\n'.encode()[3:])\n"
        "    print('odd \\ud800')\n"
        "    sys.stderr.buffer.write(b'rest')\n"
        "    sys.stderr.flush()\n"
        "    try:\n"
        "        sys.stdout.fileno()\n"
        "    except io.UnsupportedOperation:\n"
        "        return [sys.stdout.encoding, sys.stdout.isatty()]\n"
    )
    async with bench(tmp_path) as on:
        assert await on.run(source) == ["utf-8", False]
        said = [(one["title"], one["message"]) for one in on.asked.logs]
    assert said == [
        ("stdout", "Gr\u00fc\u00dfe"),
        ("stdout", "odd \\ud800"),
        ("stderr", "rest"),
    ]


def open_files() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def few_files(spare: int) -> Iterator[None]:
    """Leave only so many descriptors to be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 64, limits[1]))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for number in taken[:spare]:
            os.close(number)
        del taken[:spare]
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_no_more_files_is_not_told_as_a_matter_of_permissions(
    tmp_path: Path,
) -> None:
    """Where no process can be started, that is said, and nothing stays open."""
    async with bench(tmp_path) as on:
        on.write(PID)
        files = open_files()
        for spare in range(1, 7):
            with few_files(spare), pytest.raises(NoProcess) as caught:
                await on.run(PID)
            assert caught.value.code == "no_process"
            assert "Too many open files" in str(caught.value)
            assert "unconfined" not in str(caught.value)
            assert open_files() == files
        assert on.confinement.pids == frozenset()


async def test_a_process_that_is_ready_is_used_when_no_other_can_be(
    tmp_path: Path,
) -> None:
    """That there is none for the next call does not fail this one."""
    async with bench(tmp_path) as on:
        await on.run(PID)
        with few_files(4):
            assert await on.run(PID, Permissions(net=True)) in on.confinement.pids
