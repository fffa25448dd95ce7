"""DK-15 to DK-18: the schemas and decks that a deck can refer to."""

import shutil
from pathlib import Path

import pytest

from gambit_actors.deck.builtin import DECKS
from gambit_actors.deck.loader import DeckCache
from gambit_actors.deck.model import Link
from gambit_actors.schema.builtin import BUILTIN_URIS
from gambit_actors.store.deck_files import DiskReader
from tests.deck.rule_decks import (
    bad,
    folder,
    good,
    load_rule,
    places,
    schema_of,
    words,
)


@pytest.mark.spec("DK-15")
def test_the_builtin_schemas_resolve() -> None:
    """A deck can name all seven, and each is a schema that checks values."""
    tools = good(15).tools
    sources = {tool.input_schema.source for tool in tools if tool.input_schema}
    assert sources == set(BUILTIN_URIS)
    assert len(sources) == len(tools) == 7
    for tool in tools:
        assert tool.input_schema is not None
        assert not tool.input_schema.validator.check(3).is_valid


@pytest.mark.spec("DK-15")
def test_a_schema_that_is_not_built_in_is_an_error() -> None:
    """It is told where the reference stands, with what may have been meant."""
    assert bad(15) == ["PROMPT.md:2:17 error GS042", "PROMPT.md:3:18 error GS042"]
    assert "Did you mean gambit://schemas/graders/contexts/turn.zod.ts?" in words(
        load_rule(15, "bad")
    )


@pytest.mark.slow
@pytest.mark.spec("DK-16")
def test_local_schemas_have_three_forms() -> None:
    """A Zod file, a JSON Schema and a Python type all become schemas of the deck."""
    deck = good(16)
    (tool,) = deck.tools
    schemas = (deck.context_schema, deck.response_schema, tool.input_schema)
    fits = ({"card": "L1234"}, {"renewed": True}, {"title": "Emma", "weeks": 2})
    misfits = ({"card": "1234"}, {"renewed": "yes"}, {"weeks": 2})
    for schema, fit, misfit in zip(schemas, fits, misfits, strict=True):
        assert schema is not None
        assert schema.validator.check(fit).is_valid
        assert not schema.validator.check(misfit).is_valid


@pytest.mark.slow
@pytest.mark.spec("DK-16")
def test_a_local_schema_that_cannot_be_read_is_an_error() -> None:
    """A mistake in a file is told in that file, one in a reference where it stands."""
    assert bad(16) == [
        "PROMPT.md:7:15 error GS046",
        "PROMPT.md:11:15 error GS041",
        "answer.json:3:38 error GS045",
        "reader.zod.ts:3:35 error GS005",
    ]


@pytest.mark.spec("DK-17")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "reader.zod.ts",
            'import { z } from "zod";\nexport default z.object({ card: z.number() });',
        ),
        (
            "card.zod.ts",
            'import { z } from "zod";\nexport const card = z.number();',
        ),
    ],
)
def test_a_schema_that_changes_is_read_again(
    tmp_path: Path, file: str, text: str
) -> None:
    """The same cache sees the new schema, also if a file it imports has changed."""
    home = shutil.copytree(folder(17, "good"), tmp_path / "deck")
    cache, reader = DeckCache(), DiskReader(home)
    before = schema_of(cache.load(reader, ".").usable().context_schema)
    assert before["properties"]["card"]["type"] == "string"
    (home / file).write_text(text, encoding="utf-8")
    loaded = cache.load(reader, ".")
    assert loaded.diagnostics == ()
    after = schema_of(loaded.usable().context_schema)
    assert after["properties"]["card"]["type"] == "number"


@pytest.mark.spec("DK-17")
def test_a_schema_that_is_mended_is_read_again(tmp_path: Path) -> None:
    """What was wrong with a schema is forgotten when its file is mended."""
    assert bad(17) == ["reader.zod.ts:1:1 error GS002"]
    home = shutil.copytree(folder(17, "bad"), tmp_path / "deck")
    cache, reader = DeckCache(), DiskReader(home)
    assert cache.load(reader, ".").deck is None
    file = home / "reader.zod.ts"
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "export default reader;\n", encoding="utf-8")
    loaded = cache.load(reader, ".")
    assert loaded.diagnostics == ()
    assert schema_of(loaded.usable().context_schema)["required"] == ["card"]


@pytest.mark.spec("DK-18")
@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("gambit://decks/openai/codex-sdk/PROMPT.md", "Codex"),
        ("gambit://decks/anthropic/agent-sdk/PROMPT.md", "Claude"),
    ],
)
def test_bundled_decks_resolve(uri: str, name: str) -> None:
    """Both can be started by their URI, and be referred to by a deck."""
    itself = load_rule(18, "good", uri)
    assert itself.diagnostics == ()
    deck = itself.usable()
    assert deck.path == uri
    assert deck.prompt.startswith(f"You are {name}, linked to Gambit")
    action = good(18).action(f"ask_{name.lower()}")
    assert action is not None
    assert isinstance(action.target, Link)
    assert action.target.deck == deck
    assert deck in [scenario.link.deck for scenario in good(18).scenarios]


@pytest.mark.spec("DK-18")
def test_a_deck_that_is_not_bundled_is_an_error() -> None:
    """It is told where the reference stands, or for the deck that was started."""
    assert bad(18) == ["PROMPT.md:3:8 error GD033", "PROMPT.md:6:8 error GD033"]
    uri = "gambit://decks/openai/codex-skd/PROMPT.md"
    assert places(load_rule(18, "bad", uri)) == [f"{uri}:1:1 error GD033"]
    hint = "Did you mean gambit://decks/openai/codex-sdk/PROMPT.md?"
    assert hint in words(load_rule(18, "bad"))
    assert len(DECKS) == 2
