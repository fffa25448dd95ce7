"""A Python module is described by another process, whatever the module does."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from gambit_actors.deck.reader import DescribedModule
from gambit_actors.errors import SchemaError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.store.deck_files import DiskReader

pytestmark = pytest.mark.slow  # Each starts a Python, or several.

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="posix processes")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")

ORDER = """
import msgspec
class Order(msgspec.Struct):
    sku: str
    count: int = 1
    class Inner(msgspec.Struct):
        deep: bool
"""
DECK = """
from gambit_actors import define_deck
def run(ctx):
    return ctx.input
deck = define_deck(run=run)
"""
# What a process says that meddles with its answer: as a stranger would, by writing to
# whatever is open, and in our name, by changing what makes the answer.
STRANGER = """
import os
for number in range(3, 20):
    try: os.write(number, {!r} + b"\\n")
    except OSError: pass
os._exit(0)
"""
INSIDER = """
import __main__, types
encode = lambda _: {!r}
__main__.msgspec = types.SimpleNamespace(json=types.SimpleNamespace(encode=encode))
raise RuntimeError
"""


def reason(folder: Path, source: str, *, time_limit: float = 10.0) -> str:
    """Why a module cannot be described."""
    (folder / "orders.py").write_text(source)
    with pytest.raises(LookupError) as caught:
        DiskReader(folder, time_limit=time_limit).describe_type("orders.py", "Order")
    return str(caught.value.args[0])


@pytest.mark.spec("DK-16")
@pytest.mark.parametrize(
    "file", ["orders.py", "types.py", "my-orders.py", "msgspec.py"]
)
def test_a_type_is_described(tmp_path: Path, file: str) -> None:
    """A type is found by its name, also in a file named like a module of Python."""
    (tmp_path / file).write_text(ORDER)
    described = DiskReader(tmp_path).describe_type(file, "Order")
    order = described.schema["$defs"]["Order"]
    assert order["properties"] == {
        "sku": {"type": "string"},
        "count": {"type": "integer", "default": 1},
    }
    assert described.files == ()


@pytest.mark.spec("DK-16")
def test_a_type_inside_another_has_a_dotted_name(tmp_path: Path) -> None:
    """Dots lead into a class."""
    (tmp_path / "orders.py").write_text(ORDER)
    described = DiskReader(tmp_path).describe_type("orders.py", "Order.Inner")
    assert list(described.schema["$defs"]) == ["Inner"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Bill", "orders.py defines no Bill"),
        ("Order.Bill", "orders.py defines no Order.Bill"),
        ("", "orders.py defines no type without a name"),
    ],
)
def test_a_name_that_is_not_there_is_told(
    tmp_path: Path, name: str, words: str
) -> None:
    """A type that the module does not define is a LookupError with its name."""
    (tmp_path / "orders.py").write_text(ORDER)
    with pytest.raises(LookupError) as caught:
        DiskReader(tmp_path).describe_type("orders.py", name)
    assert caught.value.args == (words,)


def test_a_type_without_a_json_form_is_told(tmp_path: Path) -> None:
    """What is there and cannot be described is a SchemaError, as in this process."""
    (tmp_path / "orders.py").write_text("Order = range")
    with pytest.raises(SchemaError, match="range has no JSON Schema"):
        DiskReader(tmp_path).describe_type("orders.py", "Order")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("None", None),
        ("'./order.zod.ts'", "./order.zod.ts"),
        ("{'type': 'object', 'x': [1, None]}", {"type": "object", "x": [1, None]}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
    ],
)
@pytest.mark.parametrize("prefix", ["", "async "])
def test_a_deck_is_described(
    tmp_path: Path, schema: str, expected: JSONValue, prefix: str
) -> None:
    """References and JSON Schemas come as they are, types as JSON Schema."""
    (tmp_path / "orders.py").write_text(
        "from gambit_actors import define_deck\n"
        f"{prefix}def run(ctx): return ctx\n"
        f"deck = define_deck(run=run, context_schema={schema}, response_schema=str)\n"
    )
    described = DiskReader(tmp_path).describe_module("orders.py")
    assert described == DescribedModule(
        context_schema=expected, response_schema={"type": "string"}
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "orders.py defines no deck; write deck = define_deck(...) in it"),
        ("deck = {}", "the deck in orders.py was not made by define_deck"),
        (
            DECK.replace("(ctx)", "()"),
            "orders.py cannot be imported: line 5 of orders.py raises TypeError: run ",
        ),
        (
            DECK.replace("run=run", "run=run, response_schema=range"),
            "the response_schema of orders.py cannot be used: range has no JSON",
        ),
        (
            DECK.replace("run=run", "run=run, context_schema={'const': range(3)}"),
            "the context_schema of orders.py is not JSON: Encoding objects of type",
        ),
        (
            "x = {}; x['x'] = x" + DECK.replace("run=run", "run=run, context_schema=x"),
            "the context_schema of orders.py is not JSON: maximum recursion",
        ),
    ],
)
def test_a_module_without_a_deck_is_told(
    tmp_path: Path, source: str, words: str
) -> None:
    """What keeps a module from being a deck is a LookupError in plain words."""
    (tmp_path / "orders.py").write_text(source)
    with pytest.raises(LookupError) as caught:
        DiskReader(tmp_path).describe_module("orders.py")
    assert str(caught.value.args[0]).startswith(words)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "x = 1\n1 / 0",
            "line 2 of orders.py raises ZeroDivisionError: division by zero",
        ),
        ("import nowhere_at_all", "line 1 of orders.py raises ModuleNotFoundError: No"),
        ("\n\nx = (", "line 3 of orders.py is not Python: '(' was never closed"),
        ("import sys\nsys.exit(0)", "line 2 of orders.py ends the program"),
        ("raise KeyboardInterrupt", "line 1 of orders.py raises KeyboardInterrupt"),
        ("raise KeyError", "line 1 of orders.py raises KeyError"),
        (
            "class E(BaseException):\n def __str__(self): raise E\nraise E",
            "line 3 of orders.py raises E",
        ),
        (
            "raise ValueError('a\\n\\udc80.')",
            "line 1 of orders.py raises ValueError: a ?",
        ),
        (
            "def f(): f()\nf()",
            "line 1 of orders.py raises RecursionError: maximum recursion depth",
        ),
        ("import json\njson.loads('')", "line 2 of orders.py raises JSONDecodeError: "),
        ("import os\nos._exit(3)", "Python ended with code 3 before it was done"),
        ("input()", "line 1 of orders.py raises EOFError: EOF when reading a line"),
        ("from part import x", "line 2 of part.py raises NameError: name 'y' is not"),
        ("from bad import x", "line 1 of bad.py is not Python: invalid syntax"),
    ],
)
def test_a_module_that_cannot_be_imported_says_where(
    tmp_path: Path, source: str, words: str
) -> None:
    """Whatever a module raises is one sentence with the author's line."""
    (tmp_path / "part.py").write_text("\nx = y")
    (tmp_path / "bad.py").write_text("x = = 1")
    told = reason(tmp_path, source)
    assert told.startswith(f"orders.py cannot be imported: {words}")
    assert "\n" not in told
    assert not told.endswith((".", ":"))


def test_a_long_reason_is_cut(tmp_path: Path) -> None:
    """A message of any size becomes a sentence that can be read."""
    assert len(reason(tmp_path, "raise ValueError('long ' * 1_000_000)")) < 1000


@posix_only
def test_a_crash_is_told(tmp_path: Path) -> None:
    """A module that kills its Python is told by the signal."""
    told = reason(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert told == (
        "orders.py cannot be imported: Python was ended by SIGSEGV before it was done"
    )


@pytest.mark.parametrize("forge", [STRANGER, INSIDER])
@pytest.mark.parametrize(
    "answer",
    [
        b'{"type":"found","schemas":[],"files":[]}',
        b'{"type":"found","schemas":[{},{},{}],"files":[]}',
        b'{"type":"found","schemas":[3,3],"files":[]}',
        b'{"type":"found","schemas":["\xff"],"files":[]}',
        b'{"type":"found"}',
        b'{"type":"lost"}',
        b"\xff",
        b"",
    ],
    ids=lambda answer: answer[:40].decode("ascii", "replace"),
)
def test_an_answer_that_is_broken_is_told(
    tmp_path: Path, answer: bytes, forge: str
) -> None:
    """Whatever comes back instead of an answer is a LookupError in one sentence."""
    words = "orders.py cannot be imported: what it answered cannot be used"
    assert reason(tmp_path, forge.format(answer)) == words
    with pytest.raises(LookupError) as caught:
        DiskReader(tmp_path).describe_module("orders.py")
    assert caught.value.args == (words,)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"type":"found","schemas":[{}],"files":[]}',
        b'{"type":"no_schema","reason":"no"}',
    ],
)
def test_an_answer_to_another_question_is_told(tmp_path: Path, answer: bytes) -> None:
    """What could be said about a type is no answer about a deck."""
    (tmp_path / "orders.py").write_text(INSIDER.format(answer))
    with pytest.raises(LookupError, match="what it answered cannot be used"):
        DiskReader(tmp_path).describe_module("orders.py")


@pytest.mark.parametrize("schemas", [b"[{},{}]", b'["./order.json"]', b"[null]"])
def test_an_answer_about_a_deck_is_none_about_a_type(
    tmp_path: Path, schemas: bytes
) -> None:
    """A type has one schema, which is an object."""
    answer = b'{"type":"found","schemas":' + schemas + b',"files":[]}'
    told = reason(tmp_path, INSIDER.format(answer))
    assert told.endswith("what it answered cannot be used")


@pytest.mark.parametrize("schema", [b"{}", b'{"a":' * 20_000 + b"1" + b"}" * 20_000])
def test_a_stranger_is_not_believed(tmp_path: Path, schema: bytes) -> None:
    """An answer counts only with the token that the process was started with."""
    answer = b'{"type":"found","schemas":[' + schema + b'],"files":[]}'
    told = reason(tmp_path, STRANGER.format(answer))
    assert told.endswith("what it answered cannot be used")


def test_a_reason_is_one_sentence_whoever_gives_it(tmp_path: Path) -> None:
    """What a process gives as a reason is cut and put on one line here, too."""
    answer = b'{"type":"not_found","reason":"a\\nb' + b"c" * 10_000 + b'."}'
    told = reason(tmp_path, INSIDER.format(answer))
    assert told.startswith("a b")
    assert len(told) < 1000


def test_a_schema_nested_too_deeply_is_told(tmp_path: Path) -> None:
    """A module that may recurse more deeply than we do still gets a sentence."""
    (tmp_path / "orders.py").write_text(
        "import sys\nsys.setrecursionlimit(100_000)\nx = {}\n"
        "for _ in range(5_000): x = {'a': x}\n"
        + DECK.replace("run=run", "run=run, context_schema=x")
    )
    with pytest.raises(LookupError, match="its description is nested too deeply"):
        DiskReader(tmp_path).describe_module("orders.py")


def test_an_answer_without_end_is_cut(tmp_path: Path) -> None:
    """No more is read than an answer can have."""
    told = reason(
        tmp_path,
        "import os\nwhile True:\n  for number in range(3, 20):\n"
        "    try: os.write(number, b'x' * 65_536)\n    except OSError: pass\n",
    )
    assert told == "orders.py cannot be imported: its description is too large"


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    pass",
        "import time\ntime.sleep(1000)",
        "import time\nwhile True:\n try: time.sleep(9)\n except BaseException: pass",
        "import signal as s, time\ns.signal(14, s.SIG_IGN)\ntime.sleep(1000)",
    ],
)
@posix_only
def test_a_module_that_does_not_end_is_cut(tmp_path: Path, source: str) -> None:
    """A module that loops or waits, also one that will not be stopped, is killed."""
    start = time.monotonic()
    told = reason(tmp_path, source, time_limit=0.1)
    assert told.startswith(
        "orders.py cannot be imported: it did not end within 0.1 seconds"
    )
    assert time.monotonic() - start < 10


@posix_only
def test_a_module_that_does_not_end_is_told_its_line(tmp_path: Path) -> None:
    """A module that is cut while it runs hears where it was."""
    told = reason(tmp_path, "import time\ntime.sleep(1000)", time_limit=0.1)
    assert told.endswith("seconds; it was at line 2 of orders.py")


@posix_only
def test_a_process_that_got_away_is_not_waited_for(tmp_path: Path) -> None:
    """An answer is waited for until the time is up, whoever keeps its pipe open."""
    start = time.monotonic()
    told = reason(
        tmp_path,
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\n"
        "if libc.fork() == 0:\n"
        "    os.setsid()\n"
        "    if libc.fork() == 0: time.sleep(6)\n"
        "os._exit(0)\n",
        time_limit=0.2,
    )
    assert told == "orders.py cannot be imported: it did not end within 0.2 seconds"
    assert time.monotonic() - start < 4  # It sleeps for 6; allowed are 2.2.


@posix_only
def test_a_process_that_cannot_be_killed_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of another user, or one that hangs in the system, is left behind."""
    groups: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _: groups.append(group))
    source = "import signal, time\nsignal.signal(14, signal.SIG_IGN)\ntime.sleep(60)"
    start = time.monotonic()
    told = reason(tmp_path, source, time_limit=0.1)
    spent = time.monotonic() - start
    monkeypatch.undo()
    os.killpg(groups[0], signal.SIGKILL)
    assert told == "orders.py cannot be imported: it did not end within 0.1 seconds"
    assert spent < 4


def test_prints_do_not_spoil_the_answer(tmp_path: Path) -> None:
    """Whatever a module writes to its outputs, by whichever way, goes nowhere."""
    noise = (
        "import os, sys\n"
        "print('{}' * 1_000_000, flush=True)\n"
        'for number in (0, 1, 2): os.write(number, b\'{"type": "found"}\' * 100_000)\n'
        "sys.stderr.write('x' * 1_000_000)\n"
        "sys.__stdout__.write('unflushed')\n"
    )
    (tmp_path / "orders.py").write_text(noise + ORDER)
    described = DiskReader(tmp_path).describe_type("orders.py", "Order")
    assert list(described.schema["$defs"]) == ["Order"]


def test_threads_are_not_waited_for(tmp_path: Path) -> None:
    """A module that leaves a thread running is described, and the thread is gone."""
    noise = (
        "import atexit, threading\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "atexit.register(threading.Event().wait)\n"
    )
    (tmp_path / "orders.py").write_text(noise + ORDER)
    assert DiskReader(tmp_path).describe_type("orders.py", "Order").schema


@pytest.mark.parametrize(
    "change",
    [
        "open('kept.txt', 'w')",
        "open('kept.txt', 'a').write('x')",
        "open('new.txt', 'x')",
        "import os; os.open('new.txt', os.O_CREAT)",
        "import os; os.truncate('kept.txt', 0)",
        "import pathlib; pathlib.Path('kept.txt').unlink()",
        "import pathlib; pathlib.Path('new').mkdir()",
        "import os; os.rename('kept.txt', 'new.txt')",
        "import shutil; shutil.rmtree('.')",
        "import sqlite3; sqlite3.connect('new.db')",
        pytest.param("import os; os.mkfifo('new')", marks=posix_only),
        pytest.param("import os; os.mknod('new')", marks=posix_only),
        pytest.param(
            "import socket as s; s.socket(s.AF_UNIX).bind('new')", marks=posix_only
        ),
        pytest.param(
            "import os; os.setxattr('kept.txt', 'user.a', b'a')", marks=linux_only
        ),
    ],
)
def test_a_module_that_changes_files_is_stopped(tmp_path: Path, change: str) -> None:
    """A module that makes, empties, moves or removes a file is stopped with a word."""
    (tmp_path / "kept.txt").write_text("kept")
    told = reason(tmp_path, f"\n{change}")
    assert "line 2 of orders.py raises PermissionError: a module that is only" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.txt", "orders.py"]
    assert (tmp_path / "kept.txt").read_text() == "kept"


@posix_only
def test_a_library_that_writes_to_a_file_is_stopped(tmp_path: Path) -> None:
    """A write that does not go by way of Python's open meets the system's limit."""
    (tmp_path / "kept.txt").write_text("kept")
    told = reason(
        tmp_path,
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.write(libc.open(b'kept.txt', os.O_WRONLY | os.O_APPEND), b'x', 1)\n"
        "raise OSError(os.strerror(ctypes.get_errno()))",
    )
    assert "File too large" in told
    assert (tmp_path / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize(
    "start",
    [
        "import subprocess; subprocess.Popen(['sleep', '1000'])",
        "import os; os.system('sleep 1000')",
        pytest.param("import os; os.fork()", marks=posix_only),
        "import multiprocessing as m; m.get_context('spawn').Process().start()",
        pytest.param(
            "import multiprocessing.util as u; u.spawnv_passfds(b'sh', [b'sh'], [])",
            marks=posix_only,
        ),
    ],
)
def test_a_module_that_starts_processes_is_stopped(tmp_path: Path, start: str) -> None:
    """A module that starts a process is stopped with a word."""
    told = reason(tmp_path, f"\n{start}")
    assert "line 2 of orders.py raises PermissionError" in told
    assert "may not start a process" in told


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("s.socket().connect(('127.0.0.1', 9))", marks=posix_only),
        pytest.param("s.socket().bind(('127.0.0.1', 0))", marks=posix_only),
        "s.socket(type=s.SOCK_DGRAM).sendto(b'a', ('127.0.0.1', 9))",
        "s.create_connection(('localhost', 9))",
    ],
)
def test_a_module_that_uses_the_network_is_stopped(tmp_path: Path, use: str) -> None:
    """A module that calls somebody, or waits to be called, is stopped with a word."""
    told = reason(tmp_path, f"import socket as s\n{use}")
    assert "line 2 of orders.py raises PermissionError" in told
    assert "may not use the network" in told


@linux_only
def test_a_module_that_takes_too_much_memory_is_stopped(tmp_path: Path) -> None:
    """Memory ends at 4 GiB, before the machine that looks at a module is in trouble."""
    assert "line 1 of orders.py raises MemoryError" in reason(
        tmp_path, "bytes(5 << 30)"
    )


def test_what_changes_nothing_is_allowed(tmp_path: Path) -> None:
    """A database in memory, an event loop and a thread leave no trace."""
    noise = (
        "import asyncio, os, socket, sqlite3, threading\n"
        "sqlite3.connect(':memory:').execute('create table a (b)')\n"
        "asyncio.run(asyncio.sleep(0))\n"
        "socket.socketpair()\n"
        "threading.Thread(target=print).start()\n"
        "open(os.devnull, 'w').write('a')\n"
    )
    (tmp_path / "orders.py").write_text(noise + ORDER)
    assert DiskReader(tmp_path).describe_type("orders.py", "Order").schema


@posix_only
@pytest.mark.parametrize(
    "line",
    [
        "import trio",
        "import tempfile; assert tempfile.gettempdir()",
        "import ctypes.util; ctypes.util.find_library('not_there')",
    ],
)
def test_a_module_may_look_around_where_there_is_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """To ask for a library or the temporary folder is no change, with gcc on PATH."""
    compiler = tmp_path / "bin" / "gcc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    (tmp_path / "orders.py").write_text(f"{line}\nOrder = int\n")
    described = DiskReader(tmp_path).describe_type("orders.py", "Order")
    assert described.schema == {"type": "integer"}


@posix_only
def test_no_process_is_left(tmp_path: Path) -> None:
    """A process that a library forked is killed with the one that was asked."""
    # A fork that Python does not see; it tells its number by a pipe that was there.
    os.mkfifo(tmp_path / "numbers")
    (tmp_path / "orders.py").write_text(
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\n"
        "numbers = libc.open(b'numbers', os.O_WRONLY)\n"
        "if libc.fork() == 0:\n"
        "    os.write(numbers, str(os.getpid()).encode())\n"
        "    time.sleep(1000)\n"
        "time.sleep(1000)\n"
    )
    heard: list[int] = []

    def listen() -> None:
        with (tmp_path / "numbers").open() as numbers:
            heard.append(int(numbers.read()))  # Ends when all who could write have.

    listener = threading.Thread(target=listen)
    listener.start()
    reader = DiskReader(tmp_path, time_limit=0.2)
    with pytest.raises(LookupError, match="did not end"):
        reader.describe_module("orders.py")
    listener.join()
    assert heard


def test_keys_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module sees none of our environment but what is needed to run at all."""
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    monkeypatch.setenv("PYTHONSTARTUP", "planted")
    wanted = "run=run, context_schema={**os.environ}"
    source = "import os" + DECK.replace("run=run", wanted)
    (tmp_path / "orders.py").write_text(source)
    seen = DiskReader(tmp_path).describe_module("orders.py").context_schema
    assert isinstance(seen, dict)
    assert "planted" not in str(seen)
    assert seen["PATH"] == os.environ["PATH"]


def test_a_module_runs_in_its_folder_and_not_as_a_program(tmp_path: Path) -> None:
    """Its folder is the current one, and it is imported under its own name."""
    folder = tmp_path / "deck"
    folder.mkdir()
    (folder / "orders.py").write_text(
        "import os"
        + DECK.replace("run=run", "run=run, context_schema={'a': os.getcwd()}")
        + "if __name__ != 'orders': raise RuntimeError(__name__)"
    )
    described = DiskReader(tmp_path).describe_module("deck/orders.py")
    assert described.context_schema == {"a": str(folder)}
    assert list(folder.iterdir()) == [folder / "orders.py"]  # No __pycache__.


@pytest.mark.parametrize(
    ("base", "path", "prefix"),
    [
        ("", "deck/orders.py", "deck/"),
        ("", "./deck/orders.py", "./deck/"),
        ("deck", "orders.py", ""),
        ("deck/more", "../orders.py", "../"),
        ("/", "{root}/deck/orders.py", "{root}/deck/"),
    ],
)
def test_what_a_module_imports_from_near_it_is_listed(
    tmp_path: Path, base: str, path: str, prefix: str
) -> None:
    """Files of its folder tree are named like its path; libraries are not listed."""
    deck = tmp_path / "deck"
    installed = deck / ".venv" / "site-packages"
    for folder in (deck / "more", installed):
        folder.mkdir(parents=True)
    (deck / "parts.py").write_text("import more.sizes\nimport calendar, email\n")
    (deck / "more" / "__init__.py").write_text("")
    (deck / "more" / "sizes.py").write_text("Size = int\n")
    (deck / "unused.py").write_text("")
    (deck / "calendar.py").write_text("raise RuntimeError('not me')")
    (installed / "library.py").write_text("")
    (deck / "orders.py").write_text(
        "import sys\nsys.path.append('.venv/site-packages')\n"
        "import library, parts\nOrder = parts.more.sizes.Size\n"
    )
    described = DiskReader(tmp_path / base).describe_type(
        path.format(root=tmp_path), "Order"
    )
    assert described.schema == {"type": "integer"}
    assert described.files == tuple(
        prefix.format(root=tmp_path) + name
        for name in ("more/__init__.py", "more/sizes.py", "parts.py")
    )


def test_a_sibling_may_import_the_module(tmp_path: Path) -> None:
    """Files that import each other meet the same module, not a second one."""
    (tmp_path / "orders.py").write_text("class Base: pass\nimport parts\n" + ORDER)
    (tmp_path / "parts.py").write_text("import orders\nassert orders.Base")
    described = DiskReader(tmp_path).describe_type("orders.py", "Order")
    assert described.files == ("parts.py",)


def test_what_we_can_import_a_module_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders on our own path are on the module's, after Python's own."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "sizes.py").write_text("Size = int")
    (library / "types.py").write_text("raise RuntimeError('not me')")
    monkeypatch.syspath_prepend(library)
    (tmp_path / "orders.py").write_text("from sizes import Size as Order")
    described = DiskReader(tmp_path).describe_type("orders.py", "Order")
    assert described.schema == {"type": "integer"}


def test_a_python_that_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a Python to run, nothing can be imported, and that is said."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert reason(tmp_path, ORDER).startswith(
        "orders.py cannot be imported: Python does not start ("
    )
