"""Scenarios, graders and actions: limits, permissions and what each role asks for."""

import pytest

from gambit_actors.deck.documents import document_from_text
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.loader import load_decks
from gambit_actors.deck.model import Link
from gambit_actors.deck.permissions import Permissions, RunAccess
from gambit_actors.deck.sections import read_permissions
from gambit_actors.deck.tables import Table
from tests.deck.reading import Texts, deck_text, found, load

SCHEMAS = 'contextSchema = "/s.json"\nresponseSchema = "/s.json"\n'
TEXT = {"/s.json": '{"type": "string"}'}
CHILD = deck_text(SCHEMAS + "respond = true")
ACTION = '[[actions]]\nname = "a"\ndescription = "A."\npath = "/c/PROMPT.md"\n'
SCENARIO = '[[scenarios]]\npath = "/c/PROMPT.md"\n'
GRADER_SCHEMAS = (
    'contextSchema = "gambit://schemas/graders/contexts/turn.zod.ts"\n'
    'responseSchema = "gambit://schemas/graders/grader_output.zod.ts"\n'
)


def test_a_scenario_may_have_a_number_of_turns() -> None:
    """The maxTurns beside a scenario's path is kept."""
    text = deck_text(SCENARIO + "maxTurns = 3")
    loaded = load(TEXT | {"PROMPT.md": text, "/c/PROMPT.md": CHILD})
    assert found(loaded) == []
    assert loaded.usable().scenarios[0].max_turns == 3


def test_a_scenario_has_at_least_one_turn() -> None:
    """No turns at all is an error at the number."""
    text = deck_text(SCENARIO + "maxTurns = 0")
    loaded = load(TEXT | {"PROMPT.md": text, "/c/PROMPT.md": CHILD})
    assert found(loaded) == [("GD012", 4, 12)]
    assert loaded.diagnostics[0].severity == "error"


def test_a_grader_has_no_turns() -> None:
    """In a list of graders maxTurns is not known, and not kept."""
    text = deck_text('[[graders]]\npath = "/c/PROMPT.md"\nmaxTurns = 3')
    grader = deck_text(GRADER_SCHEMAS + "respond = true")
    loaded = load({"PROMPT.md": text, "/c/PROMPT.md": grader})
    assert found(loaded) == [("GD010", 4, 1)]
    assert loaded.usable().graders[0].max_turns is None


@pytest.mark.spec("DK-34")
def test_permissions_of_a_snippet_are_seen_from_its_folder() -> None:
    """Paths beside an action in a snippet start where the snippet is."""
    row = 'permissions = { read = ["./data"], run = { paths = ["../bin/x"] } }'
    files = TEXT | {
        "PROMPT.md": deck_text(
            "[permissions]\nread = true\nrun = true", "![](parts/s.md)"
        ),
        "parts/s.md": deck_text(ACTION + row),
        "/c/PROMPT.md": CHILD,
    }
    loaded = load(files)
    assert found(loaded) == []
    assert loaded.usable().actions[0].permissions == Permissions(
        read=("/home/parts/data",), run=RunAccess(paths=("/home/bin/x",))
    )


@pytest.mark.spec("DK-34")
@pytest.mark.parametrize(
    ("own", "codes"),
    [
        (SCHEMAS, []),  # So it may be an action, and have what its parent leaves it.
        ("[permissions]\n", ["GD061"]),
        ("[permissions]\nread = true\n", []),
    ],
)
@pytest.mark.parametrize("entry", [ACTION, SCENARIO])
def test_a_deck_that_declares_nothing_may_be_narrowed(
    entry: str, own: str, codes: list[str]
) -> None:
    """What a deck without permissions has is for its parent to say, so no warning."""
    text = deck_text(own + entry + 'permissions = { read = ["data"] }')
    loaded = load(TEXT | {"PROMPT.md": text, "/c/PROMPT.md": CHILD})
    assert [code for code, *_ in found(loaded)] == codes
    assert loaded.deck is not None


@pytest.mark.parametrize(
    ("entry", "row", "message"),
    [
        (ACTION, 'read = ["data"], net = true', "read: /home/data; net: everything."),
        (ACTION, 'run = { commands = ["git"] }', "run: git."),
        (ACTION, "read = false", None),
        (SCENARIO, "read = true", None),  # It starts a run of its own.
    ],
)
def test_a_root_without_permissions_has_none_to_narrow(
    entry: str, row: str, message: str | None
) -> None:
    """An action of a root that declares nothing is told that it gets nothing."""
    text = deck_text(f"{entry}permissions = {{ {row} }}")
    loaded = load(TEXT | {"PROMPT.md": text, "/c/PROMPT.md": CHILD})
    said = [(d.code, d.message.rpartition("nothing: ")[2]) for d in loaded.diagnostics]
    assert said == ([("GD062", message)] if message else [])
    assert loaded.deck is not None


def test_a_deck_that_another_runs_may_narrow_what_that_leaves_it() -> None:
    """A handler without permissions has those of its deck: there is no warning."""
    files = TEXT | {
        "PROMPT.md": deck_text('[handlers.onError]\npath = "h/PROMPT.md"'),
        "h/PROMPT.md": deck_text(f"{ACTION}permissions = {{ read = true }}"),
        "/c/PROMPT.md": CHILD,
    }
    assert found(load(files)) == []
    assert [code for code, *_ in found(load(files, "h"))] == ["GD062"]
    roots = load_decks(Texts(files), ["h", "."])
    assert roots.diagnostics == ()


@pytest.mark.spec("DK-34")
@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("key", ["commands", "paths"])
def test_commands_and_paths_are_lists(key: str, value: str) -> None:
    """A flag in place of a list of programs is an error, and grants nothing."""
    other = 'paths = ["/bin/ls"]' if key == "commands" else 'commands = ["ls"]'
    text = deck_text(f"[run]\n{key} = {value}\n{other}")
    document, findings = document_from_text("PROMPT.md", text), Findings()
    table = Table(document, findings, document.values)
    permissions = read_permissions(table, str)
    assert [(d.code, d.line) for d in findings] == [("GD060", 3)]
    assert findings.has_errors
    assert permissions == Permissions(run=False)


@pytest.mark.spec("DK-5")
@pytest.mark.parametrize(
    ("schema", "codes"),
    [
        ("z.string()", []),
        ("z.string().nullable()", ["GD042"]),
        ("z.union([z.string(), z.number()])", ["GD042"]),
        ("z.any()", ["GD042"]),
    ],
)
def test_a_plain_scenario_gives_nothing_but_a_string(
    schema: str, codes: list[str]
) -> None:
    """What may be something else than a string is noticed where it is declared."""
    scenario = deck_text('contextSchema = "/s.json"\nresponseSchema = "/r.zod.ts"')
    files = TEXT | {
        "PROMPT.md": deck_text(SCENARIO),
        "/c/PROMPT.md": scenario,
        "/r.zod.ts": f'import {{ z }} from "zod";\nexport default {schema};\n',
    }
    loaded = load(files)
    assert found(loaded) == [(code, 3, 18) for code in codes]
    assert loaded.usable().scenarios[0].link.is_usable


@pytest.mark.spec("DK-6")
@pytest.mark.parametrize(
    ("entry", "schemas"),
    [
        (ACTION, SCHEMAS),
        ('[[graders]]\npath = "/c/PROMPT.md"\n', GRADER_SCHEMAS),
    ],
)
def test_the_end_snippet_is_no_answer(entry: str, schemas: str) -> None:
    """A deck that may end the conversation has to respond all the same."""
    child = deck_text(schemas, "![](gambit://snippets/end.md)")
    files = TEXT | {"PROMPT.md": deck_text(entry), "/c/PROMPT.md": child}
    loaded = load(files)
    assert found(loaded) == [("GD043", 2, 1)]
    assert loaded.diagnostics[0].file == "/c/PROMPT.md"
    deck = loaded.usable()
    links = [reference.link for reference in deck.graders]
    links += [a.target for a in deck.actions if isinstance(a.target, Link)]
    assert [(link.deck.allow_end, link.deck.respond) for link in links] == [
        (True, False)
    ]
