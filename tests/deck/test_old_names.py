"""Old names beside new ones, and in every place where they may stand."""

import pytest

from gambit_actors.deck.loader import Loaded, load_deck
from gambit_actors.deck.model import Module
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.schemas import LoadedSchema
from tests.deck.reading import Texts, deck_text, found, load

OLD_KEYS = [("inputSchema", "contextSchema"), ("outputSchema", "responseSchema")]
OLD = '{"type": "object", "properties": {"old": {}}}'
NEW = '{"type": "object", "properties": {"new": {}}}'
SCHEMAS = {"/old.json": OLD, "/new.json": NEW}
CHILD = deck_text(
    'contextSchema = "/s.json"\nresponseSchema = "/s.json"\nrespond = true'
)
TURN = "gambit://schemas/graders/contexts/turn.zod.ts"
GRADER = deck_text(
    f'contextSchema = "{TURN}"\n'
    'responseSchema = "gambit://schemas/graders/grader_output.zod.ts"\n'
    "respond = true"
)
TEXT = {"/s.json": '{"type": "string"}'}


def field(schema: LoadedSchema | None) -> str:
    """The one field of a schema, which tells which one it is."""
    assert schema is not None
    assert schema.schema is not None
    (name,) = schema.schema["properties"]
    return str(name)


def executed(rows: str) -> Loaded:
    """Load a deck with an action that executes a module, and more about it."""
    text = deck_text(
        f'[[actions]]\nname = "a"\ndescription = "A."\nexecute = "m.py"\n{rows}'
    )
    files = {"PROMPT.md": text, "m.py": "", **SCHEMAS}
    reader = Texts(files, modules={"m.py": DescribedModule()})
    return load_deck(reader, ".", legacy="warn")


@pytest.mark.spec("DK-39")
def test_old_schema_keys_of_an_action_work() -> None:
    """An action may call its schemas inputSchema and outputSchema, with a warning."""
    loaded = executed('inputSchema = "/old.json"\noutputSchema = "/new.json"')
    assert found(loaded) == [("GD081", 6, 1), ("GD081", 7, 1)]
    target = loaded.usable().actions[0].target
    assert isinstance(target, Module)
    assert field(target.context_schema) == "old"
    assert field(target.response_schema) == "new"


@pytest.mark.spec("DK-39")
def test_the_new_schema_key_of_an_action_wins() -> None:
    """Of both keys of an action the one of today counts, and there is one warning."""
    loaded = executed(
        'inputSchema = "/old.json"\ncontextSchema = "/new.json"\n'
        'responseSchema = "/new.json"'
    )
    assert found(loaded) == [("GD081", 6, 1)]
    assert field(loaded.usable().actions[0].context_schema) == "new"


@pytest.mark.spec("DK-39")
@pytest.mark.parametrize(("old", "new"), OLD_KEYS)
def test_the_new_schema_key_of_a_deck_wins(old: str, new: str) -> None:
    """Of both keys of a deck the one of today counts, and there is one warning."""
    text = deck_text(f'{old} = "/old.json"\n{new} = "/new.json"')
    loaded = load(SCHEMAS | {"PROMPT.md": text}, legacy="warn")
    assert found(loaded) == [("GD081", 2, 1)]
    deck = loaded.usable()
    schemas = {
        "contextSchema": deck.context_schema,
        "responseSchema": deck.response_schema,
    }
    assert field(schemas.pop(new)) == "new"
    assert list(schemas.values()) == [None]


@pytest.mark.spec("DK-39")
@pytest.mark.parametrize("has_both", [False, True])
@pytest.mark.parametrize(("old", "new"), OLD_KEYS)
def test_old_schema_keys_of_a_snippet_are_fragments(
    old: str, new: str, has_both: bool
) -> None:
    """A snippet may use the old key; beside the fragment of today it is ignored."""
    rows = f'{old} = "/old.json"\n'
    if has_both:
        rows += f'{new.replace("Schema", "Fragment")} = "/new.json"'
    files = SCHEMAS | {"PROMPT.md": "![](s.md)", "s.md": deck_text(rows)}
    loaded = load(files, legacy="warn")
    assert found(loaded) == [("GD081", 2, 1)]
    assert loaded.diagnostics[0].file == "s.md"
    deck = loaded.usable()
    is_context = new == "contextSchema"
    schema = deck.context_schema if is_context else deck.response_schema
    assert field(schema) == ("new" if has_both else "old")


@pytest.mark.spec("DK-39")
def test_the_new_keys_of_a_handler_win() -> None:
    """Beside onBusy and repeatMs their old names are ignored, with a warning each."""
    text = deck_text("""
        [handlers.onInterval]
        path = "old/PROMPT.md"
        [handlers.onBusy]
        path = "new/PROMPT.md"
        intervalMs = 1000
        repeatMs = 2000
    """)
    files = {"PROMPT.md": text, "new/PROMPT.md": "New.", "old/PROMPT.md": "Old."}
    loaded = load(files, legacy="warn")
    assert found(loaded) == [("GD082", 2, 11), ("GD082", 6, 1)]
    busy = loaded.usable().handlers.on_busy
    assert busy is not None
    assert (busy.link.path, busy.repeat_seconds) == ("new/PROMPT.md", 2)


@pytest.mark.spec("DK-39")
def test_the_old_list_of_actions_asks_for_no_description() -> None:
    """An entry of actionDecks may leave out what one of actions must have."""
    text = deck_text('[[actionDecks]]\nname = "a"\npath = "c/PROMPT.md"')
    files = TEXT | {"PROMPT.md": text, "c/PROMPT.md": CHILD}
    loaded = load(files, legacy="warn")
    assert found(loaded) == [("GD080", 2, 3)]
    assert loaded.usable().actions[0].description == ""
    files["PROMPT.md"] = text.replace("actionDecks", "actions")
    assert [code for code, *_ in found(load(files))] == ["GD013"]


@pytest.mark.spec("DK-39", "DK-40")
@pytest.mark.parametrize(
    ("entry", "child"),
    [
        ('[[actionDecks]]\nname = "a"\npath = "x.md"', CHILD),
        ('[[testDecks]]\npath = "x.md"', CHILD),
        ('[[graderDecks]]\npath = "x.md"', GRADER),
        ('[handlers.onBusy]\npath = "x.md"', "Wait."),
        ('[handlers.onIdle]\npath = "x.md"', "Wait."),
        ('[handlers.onError]\npath = "x.md"', "Sorry."),
    ],
)
def test_a_deck_under_an_old_name_works(entry: str, child: str) -> None:
    """An old list, or a handler, may name a deck whose file has another name."""
    files = TEXT | {"PROMPT.md": deck_text(entry), "x.md": child}
    loaded = load(files, legacy="warn")
    codes = ["GD080"] if entry.startswith("[[") else []
    assert [code for code, *_ in found(loaded)] == [*codes, "GD086"]
    deck = loaded.usable()
    handlers = (deck.handlers.on_busy, deck.handlers.on_idle, deck.handlers.on_error)
    links = [handler.link for handler in handlers if handler is not None]
    links += [reference.link for reference in (*deck.scenarios, *deck.graders)]
    links += [a.target for a in deck.actions if not isinstance(a.target, Module)]
    assert [(link.path, link.is_usable) for link in links] == [("x.md", True)]
    assert load(files, legacy="refuse").deck is None


@pytest.mark.spec("DK-37")
@pytest.mark.parametrize("key", ["actions", "scenarios", "graders"])
def test_a_list_of_today_names_a_prompt(key: str) -> None:
    """What an old list may do is an error in the list of today."""
    rows = f'[[{key}]]\npath = "x.md"\n'
    rows += 'name = "a"\ndescription = "A."' if key == "actions" else ""
    child = GRADER if key == "graders" else CHILD
    loaded = load(TEXT | {"PROMPT.md": deck_text(rows), "x.md": child})
    assert found(loaded) == [("GD031", 3, 8)]


@pytest.mark.spec("DK-40")
@pytest.mark.parametrize(
    ("key", "old", "child"),
    [("scenarios", "testDecks", CHILD), ("graders", "graderDecks", GRADER)],
)
def test_an_old_list_goes_with_the_new_one(key: str, old: str, child: str) -> None:
    """Both lists are read, the one of today first."""
    rows = f'[[{old}]]\npath = "b/PROMPT.md"\n[[{key}]]\npath = "a/PROMPT.md"'
    decks = dict.fromkeys(("a/PROMPT.md", "b/PROMPT.md"), child)
    loaded = load(TEXT | decks | {"PROMPT.md": deck_text(rows)}, legacy="warn")
    assert found(loaded) == [("GD080", 2, 3)]
    deck = loaded.usable()
    listed = deck.scenarios if key == "scenarios" else deck.graders
    assert [r.link.path for r in listed] == ["a/PROMPT.md", "b/PROMPT.md"]
    assert all(r.link.is_usable for r in listed)
