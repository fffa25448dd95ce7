"""What a model can call: names, targets, and all that is kept of each."""

import pytest

from gambit_actors.deck.loader import load_deck
from gambit_actors.deck.model import Action, Link, Module, Tool
from gambit_actors.deck.permissions import Permissions
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.schemas import LoadedSchema
from tests.deck.reading import Texts, deck_text, found, load, messages

CHILD = deck_text(
    'contextSchema = "/s.json"\nresponseSchema = "/s.json"\nrespond = true'
)
FILES = {"c/PROMPT.md": CHILD, "/s.json": '{"type": "string"}'}
TEXT = LoadedSchema(schema={"type": "string"}, source="/s.json")
ACTION = '[[actions]]\nname = "{}"\ndescription = "A."\npath = "c/PROMPT.md"\n'
TOOL = '[[tools]]\nname = "{}"\n'
CODE = '[[actions]]\nname = "a"\ndescription = "A."\nexecute = "{}"\n'
INLINE = 'contextSchema = "/s.json"\nresponseSchema = "/s.json"\n'


@pytest.mark.spec("DK-23")
def test_two_actions_cannot_share_a_name() -> None:
    """A name that a second action takes is an error where it is taken."""
    loaded = load(FILES | {"PROMPT.md": deck_text(ACTION.format("a") * 2)})
    assert found(loaded) == [("GD022", 7, 8)]
    assert loaded.deck is None


@pytest.mark.parametrize("entry", [ACTION, TOOL])
@pytest.mark.parametrize(
    "name", ["apply_patch", "exec", "grep_files", "list_dir", "read_file"]
)
def test_the_names_of_builtin_tools_are_taken(name: str, entry: str) -> None:
    """No action and no tool can have the name of a tool that comes by permission."""
    loaded = load(FILES | {"PROMPT.md": deck_text(entry.format(name))})
    assert found(loaded) == [("GD024", 3, 8)]
    assert loaded.deck is None


@pytest.mark.parametrize("entry", [ACTION, TOOL])
@pytest.mark.parametrize("name", ["gambit_", "gambit_context", "gambit_x"])
def test_names_that_start_with_gambit_are_reserved(name: str, entry: str) -> None:
    """No action and no tool can have a name that starts with gambit_."""
    loaded = load(FILES | {"PROMPT.md": deck_text(entry.format(name))})
    assert found(loaded) == [("GD021", 3, 8)]
    assert "reserved" in messages(loaded)[0]
    assert loaded.deck is None


@pytest.mark.parametrize("entry", [ACTION, TOOL])
@pytest.mark.parametrize("name", ["gambit", "gambits", "my_gambit_x", "read_files"])
def test_names_that_only_resemble_others_are_free(name: str, entry: str) -> None:
    """What is not quite a reserved name may be used."""
    loaded = load(FILES | {"PROMPT.md": deck_text(entry.format(name))})
    assert found(loaded) == []


def test_all_that_is_said_about_a_tool_is_kept() -> None:
    """A tool has its name, description, schema, label and id."""
    text = deck_text("""
        [[tools]]
        name = "t"
        description = "Do."
        inputSchema = "/s.json"
        label = "Tool"
        id = "t-1"
    """)
    (tool,) = load(FILES | {"PROMPT.md": text}).usable().tools
    assert tool == Tool(
        name="t", description="Do.", input_schema=TEXT, label="Tool", id="t-1"
    )


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ('path = "c/PROMPT.md"', Link("c/PROMPT.md")),
        (
            'execute = "m.py"',
            Module(path="m.py", context_schema=TEXT, response_schema=TEXT),
        ),
    ],
)
def test_all_that_is_said_about_an_action_is_kept(
    target: str, expected: Link | Module
) -> None:
    """An action has its name, description, target, permissions, label and id."""
    text = deck_text(
        f"""
        [[actions]]
        name = "a"
        description = "Do."
        {target}
        contextSchema = "/s.json"
        responseSchema = "/s.json"
        permissions = {{ read = ["data"], env = ["HOME"] }}
        label = "Action"
        id = "a-1"
        """
    )
    files = FILES | {"PROMPT.md": text, "m.py": ""}
    reader = Texts(files, modules={"m.py": DescribedModule()})
    (action,) = load_deck(reader, ".").usable().actions
    assert action == Action(
        name="a",
        description="Do.",
        target=expected,
        permissions=Permissions(read=("/home/data",), env=("HOME",)),
        label="Action",
        id="a-1",
    )


def test_sources_list_schemas_of_tools_and_modules() -> None:
    """What tools take, what actions execute, and schemas of those are sources."""
    text = deck_text(
        '[[tools]]\nname = "t"\ninputSchema = "t.json"\n'
        + CODE.format("m.py")
        + 'contextSchema = "c.json"\nresponseSchema = "r.json"'
    )
    files = {"PROMPT.md": text, "m.py": ""}
    files |= dict.fromkeys(("t.json", "c.json", "r.json"), "{}")
    deck = load_deck(Texts(files, modules={"m.py": DescribedModule()}), ".").usable()
    assert deck.sources == ("PROMPT.md", "t.json", "c.json", "r.json", "m.py")


@pytest.mark.parametrize("file", ["m.js", "m.mjs", "m.mts", "m.ts"])
def test_a_script_is_known_and_cannot_be_run(file: str) -> None:
    """An action that executes a script is warned of, and has the schemas beside it."""
    text = deck_text(CODE.format(file) + INLINE)
    loaded = load(FILES | {"PROMPT.md": text, file: ""})
    assert found(loaded) == [("GD027", 5, 11)]
    (warning,) = loaded.diagnostics
    assert warning.severity == "warning"
    assert f"{file} is not Python" in warning.message
    assert loaded.usable().actions[0].target == Module(
        path=file, context_schema=TEXT, response_schema=TEXT
    )


@pytest.mark.parametrize("file", ["m.cjs", "m.rb", "m"])
def test_what_is_neither_python_nor_a_script_is_refused(file: str) -> None:
    """An action cannot execute any other file, whatever stands beside it."""
    text = deck_text(CODE.format(file) + INLINE)
    loaded = load(FILES | {"PROMPT.md": text, file: ""})
    assert found(loaded) == [("GD027", 5, 11)]
    assert loaded.deck is None


@pytest.mark.spec("DK-37")
@pytest.mark.parametrize("path", ["x", "./x/", "x/PROMPT.md"])
@pytest.mark.parametrize("entry", [ACTION, '[[scenarios]]\npath = "c/PROMPT.md"\n'])
def test_a_folder_without_a_prompt_is_only_missing_it(entry: str, path: str) -> None:
    """A folder is not told to be called by its PROMPT.md if it has none."""
    text = deck_text(entry.format("a").replace("c/PROMPT.md", path))
    loaded = load(FILES | {"PROMPT.md": text, "x/README.md": "Hi."})
    assert [code for code, *_ in found(loaded)] == ["GD032"]
    assert "There is no deck at x/PROMPT.md." in messages(loaded)[0]
