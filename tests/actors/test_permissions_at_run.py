"""A deck has what the deck above it has, or less: seen from what its tools do."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from gambit_actors.actors.options import RunOptions
from gambit_actors.deck.permissions import Permissions, from_json, is_within
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.events import DeckStart, ModelCall
from tests.actors.playing import (
    ANYTHING,
    Stage,
    action,
    calls,
    child,
    items_in,
    outputs_of,
    root,
    stage,
)

pytestmark = pytest.mark.spec("DK-34")

RESPOND = (Call(name="gambit_respond", arguments={"payload": {}}),)
INSIDE, OUTSIDE, ABOVE = "../desk/data/a.txt", "../desk/secret.txt", "../top.txt"
NOTES = "../desk/data/b.txt"


def write(folder: Path, decks: dict[str, str]) -> DiskReader:
    """Decks on a disk, each beside the others, with files to read."""
    texts = {"desk/data/a.txt": "Alpha.", "desk/secret.txt": "Beta.", "top.txt": "Top."}
    texts["desk/data/b.txt"] = "Old."
    texts |= {f"{name}/PROMPT.md": text for name, text in decks.items()}
    for path, text in (texts | {"any.json": ANYTHING}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return DiskReader(folder)


def may(**kinds: JSONValue) -> str:
    """A table of permissions."""
    lines = [f"{kind} = {json.dumps(value)}\n" for kind, value in kinds.items()]
    return f"[permissions]\n{''.join(lines)}"


def below(name: str, deck: str | None = None, **kinds: JSONValue) -> str:
    """An action that is a deck beside this one; perhaps with less than this has."""
    more = may(**kinds).replace("[", "[actions.", 1) if kinds else ""
    return action(name, path=f"../{deck or name}/PROMPT.md", more=more)


def uses(deck: str, *reads: str) -> list[Reply]:
    """A deck that reads files, tries to change one, and responds."""
    tools = [Call(name="read_file", arguments={"path": path}) for path in reads]
    edit = {"path": NOTES, "edits": [{"old_text": "Old.", "new_text": "New."}]}
    patch = Call(name="apply_patch", arguments=edit)
    return [
        Reply(deck=f"*{deck}/PROMPT.md", pass_number=1, calls=(*tools, patch)),
        Reply(deck=f"*{deck}/PROMPT.md", calls=RESPOND),
    ]


def seen(on: Stage, deck: str, *, run: int = 0) -> list[JSONValue]:
    """What the reads of a deck gave: a text, or a status and a code."""
    log = on.entries_of(f"{deck}/PROMPT.md")[run]
    found: list[JSONValue] = []
    for output in outputs_of(items_in(log))["read_file"]:
        envelope = json.loads(output)
        is_good = "status" not in envelope
        said = (envelope.get("status"), envelope.get("code"))
        found.append(envelope["payload"]["content"] if is_good else said)
    return found


def patched(on: Stage, deck: str, *, run: int = 0) -> JSONValue:
    """The status of a deck's attempt to change a file."""
    log = on.entries_of(f"{deck}/PROMPT.md")[run]
    (output,) = outputs_of(items_in(log))["apply_patch"]
    return json.loads(output).get("status")


def offered(on: Stage, deck: str, *, run: int = 0) -> set[str]:
    """The tools that a deck's model was offered, besides the one for its result."""
    names = [
        event.tools
        for event in on.sink.of(ModelCall)
        if event.deck_path == f"{deck}/PROMPT.md" and event.pass_number == 1
    ]
    return {name for name in names[run] if name != "gambit_respond"}


DENIED = (403, "permission_denied")
READS = {"read_file", "list_dir", "grep_files"}
WRITES = READS | {"apply_patch"}


async def test_a_child_without_permissions_has_those_of_its_parent(
    tmp_path: Path,
) -> None:
    """It reads in its parent's folder, though it is in another, and nowhere else."""
    reader = write(
        tmp_path,
        {"desk": root(may(read=["./data"]) + below("kid")), "kid": child()},
    )
    script = [
        *uses("kid", INSIDE, OUTSIDE, ABOVE, "PROMPT.md"),
        calls("kid"),
        Reply(text="Done."),
    ]
    async with stage(reader, script) as on:
        await on.runtime.run("desk", message="Hi.")
        assert seen(on, "kid") == ["Alpha.", DENIED, DENIED, DENIED]
        assert patched(on, "kid") == 404
        assert offered(on, "kid") == READS
        log = str(on.entries_of("kid/PROMPT.md"))
    assert "Beta." not in log
    assert "Top." not in log


@pytest.mark.parametrize("is_declared", [True, False])
async def test_a_reference_takes_a_tool_away(is_declared: bool, tmp_path: Path) -> None:
    """An entry that narrows leaves less of a deck than another entry for the same."""
    everything = may(read=["../desk"], write=["../desk"])
    narrow, wide = below("narrow", "kid", read=["./data"]), below("wide", "kid")
    reader = write(
        tmp_path,
        {
            "desk": root(may(read=["."], write=["."]) + narrow + wide),
            "kid": child(everything if is_declared else ""),
        },
    )
    script = [
        *uses("kid", INSIDE, OUTSIDE),
        calls("narrow"),
        calls("wide"),
        Reply(text="Done."),
    ]
    async with stage(reader, script) as on:
        await on.runtime.run("desk", message="Hi.")
        assert offered(on, "kid") == READS
        assert offered(on, "kid", run=1) == WRITES
        assert seen(on, "kid") == ["Alpha.", DENIED]
        assert seen(on, "kid", run=1) == ["Alpha.", "Beta."]
        assert (patched(on, "kid"), patched(on, "kid", run=1)) == (404, None)
    assert (tmp_path / "desk/data/b.txt").read_text() == "New."


@pytest.mark.parametrize("wishes", ["all", "none", "folder"])
async def test_a_grandchild_never_has_more(wishes: str, tmp_path: Path) -> None:
    """However much those below ask for, each has at most what the one above has."""
    asked = {
        "all": may(read=True, write=True, run=True),
        "none": "",
        "folder": may(read=["..", "/"], write=[".."]),
    }[wishes]
    reader = write(
        tmp_path,
        {
            "desk": root(may(read=["./data"]) + below("kid")),
            "kid": child(asked + below("son", read=True, write=True)),
            "son": child(asked),
        },
    )
    script = [
        *uses("son", INSIDE, OUTSIDE, ABOVE),
        Reply(deck="*kid/PROMPT.md", pass_number=1, calls=calls("son").calls),
        *uses("kid"),
        calls("kid"),
        Reply(text="Done."),
    ]
    async with stage(reader, script) as on:
        await on.runtime.run("desk", message="Hi.")
        assert seen(on, "son") == ["Alpha.", DENIED, DENIED]
        assert offered(on, "son") == READS
        told = [from_json(start.permissions) for start in on.sink.of(DeckStart)]
    assert len(told) == 3
    assert all(is_within(lower, upper) for upper, lower in pairwise(told))


async def test_who_starts_a_run_narrows_all_of_it(tmp_path: Path) -> None:
    """What the caller takes away is gone for the root and for those below it."""
    reader = write(
        tmp_path,
        {
            "desk": root(may(read=["."], write=["."]) + below("kid")),
            "kid": child(),
        },
    )
    script = [
        *uses("kid", INSIDE, OUTSIDE),
        Reply(pass_number=1, calls=uses("desk", INSIDE, OUTSIDE)[0].calls),
        calls("kid"),
        Reply(text="Done."),
    ]
    allowed = Permissions(read=(reader.real_path("desk/data"),))
    async with stage(reader, script, RunOptions(permissions=allowed)) as on:
        await on.runtime.run("desk", message="Hi.")
        for deck in ("desk", "kid"):
            assert seen(on, deck) == ["Alpha.", DENIED]
            assert patched(on, deck) == 404
            assert READS <= offered(on, deck) <= READS | {"kid"}


async def test_a_root_that_declares_nothing_may_do_nothing(tmp_path: Path) -> None:
    """Without a table of permissions there are no tools, here and below."""
    reader = write(
        tmp_path,
        {"desk": root(below("kid")), "kid": child(may(read=True, write=True))},
    )
    script = [calls("kid"), Reply(deck="*kid/PROMPT.md", calls=RESPOND)]
    script.append(Reply(text="Done."))
    async with stage(reader, script) as on:
        await on.runtime.run("desk", message="Hi.")
        assert offered(on, "desk") == {"kid"}
        assert offered(on, "kid") == set()
