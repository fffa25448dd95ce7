"""Code that is confined can do what it was granted, and nothing else."""

import ast
import os
import shutil
from pathlib import Path

import pytest
import trio

from gambit_actors.deck.permissions import EVERYTHING, Permissions, RunAccess
from gambit_actors.errors import ActionFailed
from tests.actors.confined.trying import REFUSED, bench, needs_landlock

pytestmark = [needs_landlock, pytest.mark.slow]


async def test_only_granted_files_are_read(tmp_path: Path) -> None:
    """What is under a granted path can be read; all else, links out too, cannot."""
    data, home = tmp_path / "data", tmp_path / "home"
    for folder in (data, home):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    (data / "way-out").symlink_to(home)
    async with bench(tmp_path) as on:
        (on.folder / "notes.txt").write_text("Not granted either.")
        said = await on.try_all(
            Permissions(read=(str(data),)),
            f"Path('{data}/a.txt').read_text()",
            f"sorted(os.listdir('{data}'))",
            f"Path('{home}/a.txt').read_text()",
            f"Path('{data}/way-out/a.txt').read_text()",
            f"os.listdir('{home}')",
            "Path('notes.txt').read_text()",
            "os.listdir('.')",
            "Path('/etc/passwd').read_text()",
            f"Path('/proc/{os.getpid()}/environ').read_text()",
            f"Path('{data}/b.txt').write_text('')",
        )
    assert said[:2] == ["'data'", "['a.txt', 'way-out']"]
    assert said[2:] == [REFUSED] * 8


async def test_a_grant_that_became_a_link_grants_nothing(tmp_path: Path) -> None:
    """Links are followed when paths are granted, and not once more."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "a.txt").write_text("Home.")
    (tmp_path / "data").symlink_to(home)
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(read=(f"{tmp_path}/data",)),
            f"Path('{tmp_path}/data/a.txt').read_text()",
        )
    assert said == [REFUSED]


async def test_only_granted_files_are_changed(tmp_path: Path) -> None:
    """Files are made, moved and removed where that is granted, and nowhere else."""
    out, home = tmp_path / "out", tmp_path / "home"
    for folder in (out, home):
        (folder / "inner").mkdir(parents=True)
        (folder / "a.txt").write_text("As it was.")
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(write=(str(out),)),
            f"Path('{out}/b.txt').write_text('New.')",
            f"os.rename('{out}/b.txt', '{out}/inner/b.txt')",
            f"os.truncate('{out}/a.txt', 0)",
            f"Path('{home}/a.txt').write_text('')",
            f"os.truncate('{home}/a.txt', 0)",
            f"os.unlink('{home}/a.txt')",
            f"os.mkdir('{home}/more')",
            f"os.chmod('{home}/a.txt', 0o777)",
            f"os.utime('{home}/a.txt', (1, 1))",
            f"os.setxattr('{home}/a.txt', 'user.a', b'1')",
            f"Path('{out}/a.txt').read_text()",
        )
        others = await on.try_all(
            Permissions(write=(str(out),)), f"os.link('{home}/a.txt', '{out}/c.txt')"
        )
    assert said == ["4", "None", "None", *[REFUSED] * 8]
    assert others != ["None"]
    assert (home / "a.txt").read_text() == "As it was."
    assert (out / "a.txt").read_text() == ""
    assert (out / "inner" / "b.txt").read_text() == "New."


async def test_no_program_is_started_unless_granted(tmp_path: Path) -> None:
    """Without a grant there is not even a second process."""
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(),
            "subprocess.run(['/bin/true'])",
            "os.system('true') != 0",
            "os.fork()",
            "os.execv('/bin/true', ['true'])",
            "os.memfd_create('program')",
        )
    assert said == [REFUSED, "True", REFUSED, REFUSED, REFUSED]


async def test_a_granted_program_is_started_and_no_other(tmp_path: Path) -> None:
    """A command is the program that PATH leads to; the rest stays closed to it, too."""
    cat = shutil.which("cat")
    assert cat is not None
    (tmp_path / "secret.txt").write_text("Secret.")
    (tmp_path / "data.txt").write_text("Data.")
    permissions = Permissions(
        read=(f"{tmp_path}/data.txt",), run=RunAccess(commands=("cat",))
    )
    async with bench(tmp_path) as on:
        said = await on.try_all(
            permissions,
            f"subprocess.check_output(['cat', '{tmp_path}/data.txt'])",
            f"subprocess.run(['cat', '{tmp_path}/secret.txt']).returncode",
            "subprocess.run(['/bin/sh', '-c', 'true'])",
            "subprocess.run(['ls'])",
            "subprocess.run(['cat'], start_new_session=True)",
            "os.memfd_create('program')",
        )
    assert said == ["b'Data.'", "1", REFUSED, REFUSED, REFUSED, REFUSED]


async def test_no_socket_without_a_grant(tmp_path: Path) -> None:
    """No net is no TCP, no UDP, no raw packets and no sockets of this machine."""
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(),
            "socket.create_connection(('127.0.0.1', 9))",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
            "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "len(socket.socketpair())",
        )
    assert said == [*[REFUSED] * 5, "2"]


async def test_tcp_reaches_granted_ports_only(tmp_path: Path) -> None:
    """A granted port is reached, by address and by name; other ways out are closed."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    others = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    other = others[0].socket.getsockname()[1]
    async with bench(tmp_path) as on, listeners[0], others[0]:
        said = await on.try_all(
            Permissions(net=(f"*:{port}",)),
            f"socket.create_connection(('127.0.0.1', {port})).close()",
            f"socket.create_connection(('localhost', {port})).close()",
            f"socket.create_connection(('127.0.0.1', {other}))",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
            "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
            "socket.socket().listen()",
            "socket.socket().bind(('127.0.0.1', 0))",
            f"socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {other}))",
        )
    assert said == ["None", "None", *[REFUSED] * 7]


async def test_all_of_the_network_can_be_granted(tmp_path: Path) -> None:
    """With net = true there is UDP and listening; unix sockets stay closed."""
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(net=True),
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()",
            "socket.create_server(('127.0.0.1', 0)).close()",
            "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
        )
    assert said == ["None", "None", REFUSED]


async def test_variables_are_seen_by_grant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret of the runtime is not in the environment; a granted variable is."""
    monkeypatch.setenv("PLANTED_SECRET", "s3cret")
    monkeypatch.setenv("SHOP_REGION", "eu")
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(env=("SHOP_*",)),
            "sorted(os.environ)",
            "os.environ['SHOP_REGION']",
        )
        (all_of_it,) = await on.try_all(EVERYTHING, "os.environ['PLANTED_SECRET']")
    names = set(ast.literal_eval(said[0]))
    # The last is Python's own doing, where the language is not set.
    assert names - {"LC_CTYPE"} == {"LANG", "PATH", "SHOP_REGION"}
    assert said[1] == "'eu'"
    assert all_of_it == "'s3cret'"


async def test_other_processes_are_out_of_reach(tmp_path: Path) -> None:
    """No signal, no look into the runtime, even where every file may be read."""
    pid = os.getpid()
    libc = "ctypes.CDLL(None, use_errno=True)"
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(read=True),
            f"os.kill({pid}, 0)",
            f"Path('/proc/{pid}/environ').read_bytes()",
            f"open('/proc/{pid}/mem', 'rb')",
            f"{libc}.ptrace(16, {pid}, 0, 0)",
            f"{libc}.prctl(1, 0, 0, 0, 0)",
            "os.setsid()",
            f"__import__('resource').prlimit({pid}, 7)",
        )
    assert said == [*[REFUSED] * 3, "-1", "-1", REFUSED, REFUSED]


async def test_a_process_has_limits(tmp_path: Path) -> None:
    """Memory and open files are bounded, and no core is written."""
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(read=True),
            "len(bytearray(8 * 2**30))",
            "[os.open('/dev/null', 0) for _ in range(1000)]",
            "__import__('resource').getrlimit(4)",
        )
    assert said == ["MemoryError", "OSError", "(0, 0)"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("open('/etc/passwd')", "reading /etc/passwd was refused"),
        ("open('/etc/new', 'w')", "writing /etc/new was refused"),
        ("subprocess.run(['git'])", "running git was refused"),
        ("socket.socket()", "opening a socket was refused"),
    ],
)
async def test_a_refusal_says_what_was_refused(
    tmp_path: Path, line: str, words: str
) -> None:
    """What the kernel refuses is told by name, with the permission it takes."""
    source = f"import socket, subprocess\nasync def run(ctx):\n    return {line}\n"
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed, match=words) as caught:
            await on.run(source)
    assert caught.value.code == "permission_denied"
    assert "the deck's permissions do not grant it" in str(caught.value)


async def test_what_the_file_system_refuses_is_not_a_permission(tmp_path: Path) -> None:
    """An error that was not ours is told as the error it is."""
    source = "def run(ctx):\n    raise PermissionError(13, 'No', ctx.input)\n"
    out = str(tmp_path / "out")
    async with bench(tmp_path) as on:
        permissions = Permissions(read=(out,), write=(out,))
        with pytest.raises(ActionFailed, match="PermissionError") as caught:
            await on.run(source, permissions, given=f"{out}/a.txt")
    assert caught.value.code == "action_error"


async def test_modules_beside_it_can_be_imported(tmp_path: Path) -> None:
    """Files and packages beside a module are its own; links there are not followed."""
    (tmp_path / "elsewhere.py").write_text("WORD = 'out'\n")
    async with bench(tmp_path) as on:
        (on.folder / "helper.py").write_text("WORD = 'beside'\n")
        (on.folder / "calendar.py").write_text("raise RuntimeError\n")
        (on.folder / "kit").mkdir()
        (on.folder / "kit" / "__init__.py").write_text("")
        (on.folder / "kit" / "part.py").write_text("WORD = 'inside'\n")
        (on.folder / "linked.py").symlink_to(tmp_path / "elsewhere.py")
        said = await on.run(
            "import calendar, helper\n"
            "from kit import part\n"
            "def run(ctx):\n"
            "    try:\n"
            "        import linked\n"
            "    except ImportError as problem:\n"
            "        return [helper.WORD, part.WORD, str(problem)]\n"
        )
    assert said == ["beside", "inside", "No module named 'linked'"]


async def test_the_module_is_confined_before_it_is_imported(tmp_path: Path) -> None:
    """The first line of a module has no more rights than the last one."""
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed, match="cannot be imported: reading") as caught:
            await on.run("open('/etc/passwd')\ndef run(ctx):\n    pass\n")
    assert caught.value.code == "permission_denied"
