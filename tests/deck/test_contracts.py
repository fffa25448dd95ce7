"""What an action takes and gives, said in two places or in a broken one."""

import pytest

from gambit_actors.deck.loader import Loaded, load_deck
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.keywords import Schema
from tests.deck.reading import Texts, deck_text, found, load

KEYS = ("contextSchema", "responseSchema")
STRING: Schema = {"type": "string"}
SCHEMAS = {"text.json": '{"type": "string"}', "number.json": '{"type": "number"}'}
ACTION = '[[actions]]\nname = "a"\ndescription = "A."\n'
CHILD = (
    'contextSchema = "../text.json"\nresponseSchema = "../text.json"\nrespond = true'
)


def executed(more: str, module: DescribedModule) -> Loaded:
    """Load a deck with an action that executes a module."""
    text = deck_text(f'{ACTION}execute = "m.py"\n{more}')
    files = {"PROMPT.md": text, "m.py": "", **SCHEMAS}
    return load_deck(Texts(files, modules={"m.py": module}), ".")


def called(more: str) -> Loaded:
    """Load a deck with an action that is a deck."""
    text = deck_text(f'{ACTION}path = "c/PROMPT.md"\n{more}')
    return load({"PROMPT.md": text, "c/PROMPT.md": deck_text(CHILD), **SCHEMAS})


@pytest.mark.spec("DK-24")
@pytest.mark.parametrize("key", KEYS)
def test_each_schema_of_a_module_is_compared(key: str) -> None:
    """A schema beside an execute must match the module's, taken or given."""
    module = DescribedModule(context_schema=STRING, response_schema=STRING)
    assert found(executed(f'{key} = "text.json"', module)) == []
    loaded = executed(f'{key} = "number.json"', module)
    assert found(loaded) == [("GD026", 6, len(key) + 4)]
    assert loaded.deck is None


@pytest.mark.spec("DK-24")
def test_both_schemas_of_a_module_are_compared() -> None:
    """Two schemas that do not match are two errors."""
    module = DescribedModule(context_schema=STRING, response_schema=STRING)
    both = "".join(f'{key} = "number.json"\n' for key in KEYS)
    assert sorted(found(executed(both, module))) == [
        ("GD026", 6, 17),
        ("GD026", 7, 18),
    ]


@pytest.mark.spec("DK-24")
@pytest.mark.parametrize(
    ("context", "response", "expected"),
    [
        ("text", "text", []),
        ("number", "text", [("GD026", 6, 17)]),
        ("text", "number", [("GD026", 7, 18)]),
        ("number", "number", [("GD026", 6, 17), ("GD026", 7, 18)]),
    ],
)
def test_both_schemas_beside_a_path_are_compared(
    context: str, response: str, expected: list[tuple[str, int, int]]
) -> None:
    """Each of the two schemas beside a path must match the deck's."""
    loaded = called(
        f'contextSchema = "{context}.json"\nresponseSchema = "{response}.json"'
    )
    assert found(loaded) == expected
    assert (loaded.deck is None) == bool(expected)


@pytest.mark.spec("DK-24")
@pytest.mark.parametrize(
    ("key", "module"),
    [
        ("contextSchema", DescribedModule(response_schema=STRING)),
        ("responseSchema", DescribedModule(context_schema=STRING)),
    ],
)
def test_a_broken_schema_is_not_said_to_be_missing(
    key: str, module: DescribedModule
) -> None:
    """A schema beside an execute that cannot be read is one error, about reading it."""
    assert found(executed("", module)) == [("GD025", 2, 1)]
    loaded = executed(f'{key} = "no.json"', module)
    assert found(loaded) == [("GS040", 6, len(key) + 4)]
    assert loaded.deck is None
