"""Fields that snippets add to the schemas of the deck that embeds them."""

import json

import pytest

from gambit_actors.deck.loader import Loaded
from gambit_actors.schema.keywords import Schema
from tests.deck.reading import deck_text, found, load, messages
from tests.deck.rule_decks import schema_of

SIDES = ("context", "response")
STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}


def fields(*needed: str, **properties: Schema) -> Schema:
    """A schema of an object."""
    return {"type": "object", "properties": properties, "required": [*needed]}


def embedded(side: str, own: Schema | None, *fragments: Schema) -> Loaded:
    """Load a deck with a schema, and with snippets that each bring a fragment."""
    names = range(len(fragments))
    schemas = {f"{n}.json": json.dumps(f) for n, f in enumerate(fragments)}
    files = {
        "PROMPT.md": deck_text(
            "" if own is None else f'{side}Schema = "own.json"',
            " ".join(f"![]({n}.md)" for n in names),
        ),
        "own.json": json.dumps(own),
    }
    files |= {f"{n}.md": deck_text(f'{side}Fragment = "{n}.json"') for n in names}
    return load(files | schemas)


def merged(loaded: Loaded, side: str) -> Schema:
    """The schema that came out, of a deck about which there is nothing to say."""
    assert found(loaded) == []
    deck = loaded.usable()
    is_context = side == "context"
    other = deck.response_schema if is_context else deck.context_schema
    assert other is None
    return schema_of(deck.context_schema if is_context else deck.response_schema)


@pytest.mark.parametrize("side", SIDES)
def test_a_field_of_the_deck_wins(side: str) -> None:
    """Where both have a field, the deck's own counts, and the others are added."""
    loaded = embedded(side, fields(a=STRING), fields(a=NUMBER, b=NUMBER))
    assert merged(loaded, side)["properties"] == {"a": STRING, "b": NUMBER}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("own", "fragment", "needed"),
    [
        (fields(a=STRING), fields("a", "b", a=STRING, b=NUMBER), ["b"]),
        (fields("a", a=STRING), fields("b", a=STRING, b=NUMBER), ["a", "b"]),
        (fields("a", a=STRING), fields(b=NUMBER), ["a"]),
        (fields(a=STRING), fields("a", a=STRING), []),
    ],
)
def test_a_fragment_requires_what_it_adds(
    side: str, own: Schema, fragment: Schema, needed: list[str]
) -> None:
    """An added field is required if the fragment says so; an own one stays as it is."""
    assert merged(embedded(side, own, fragment), side)["required"] == needed


@pytest.mark.parametrize("side", SIDES)
def test_fragments_add_up(side: str) -> None:
    """Each snippet adds its fields to those of the deck and of the snippets before."""
    first, second = fields("b", b=NUMBER), fields("c", b=STRING, c=NUMBER)
    schema = merged(embedded(side, fields(a=STRING), first, second), side)
    assert schema["properties"] == {"a": STRING, "b": NUMBER, "c": NUMBER}
    assert schema["required"] == ["b", "c"]


@pytest.mark.parametrize("side", SIDES)
def test_a_fragment_is_the_schema_of_a_deck_without_one(side: str) -> None:
    """A deck that declares nothing takes the fragment as it is, if only a string."""
    assert merged(embedded(side, None, STRING), side) == STRING


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("own", "fragment", "whose"),
    [(STRING, fields(a=STRING), "the deck's schema"), (fields(a=STRING), STRING, "it")],
)
def test_only_objects_have_fields(
    side: str, own: Schema, fragment: Schema, whose: str
) -> None:
    """A fragment beside a schema is an error if one of them is not an object."""
    loaded = embedded(side, own, fragment)
    assert found(loaded) == [("GD056", 2, len(f"{side}Fragment") + 4)]
    assert f"and {whose} is not one." in messages(loaded)[0]
    assert loaded.deck is None


@pytest.mark.parametrize("side", SIDES)
def test_definitions_of_the_same_name_clash(side: str) -> None:
    """Two definitions that differ are an error that names them; equal ones are not."""
    own = fields(a={"$ref": "#/$defs/x"}) | {"$defs": {"x": STRING}}
    fragment = fields(b={"$ref": "#/$defs/x"}) | {"$defs": {"x": NUMBER}}
    loaded = embedded(side, own, fragment)
    assert found(loaded) == [("GD056", 2, len(f"{side}Fragment") + 4)]
    assert loaded.diagnostics[0].file == "0.md"
    assert "both define x; rename one." in messages(loaded)[0]
    assert loaded.deck is None
    same = fragment | {"$defs": {"x": STRING}}
    assert merged(embedded(side, own, same), side)["$defs"] == {"x": STRING}


@pytest.mark.parametrize("side", SIDES)
def test_definitions_of_both_are_kept(side: str) -> None:
    """What the fields of either refer to is still there, and checks values."""
    own = fields(a={"$ref": "#/$defs/x"}) | {"$defs": {"x": STRING}}
    fragment = fields(b={"$ref": "#/$defs/y"}) | {"$defs": {"y": NUMBER}}
    loaded = embedded(side, own, fragment)
    assert merged(loaded, side)["$defs"] == {"x": STRING, "y": NUMBER}
    deck = loaded.usable()
    schema = deck.context_schema or deck.response_schema
    assert schema is not None
    assert schema.validator.check({"a": "x", "b": 1}).is_valid
    assert not schema.validator.check({"a": "x", "b": "y"}).is_valid


def test_a_broken_schema_is_not_hidden_by_a_fragment() -> None:
    """A fragment does not stand in for a schema with an error, in any role."""
    scenario = deck_text(
        'contextSchema = "/s.json"\nresponseSchema = "/no.json"', "![](/f.md)"
    )
    files = {
        "PROMPT.md": deck_text('[[scenarios]]\npath = "c/PROMPT.md"'),
        "c/PROMPT.md": scenario,
        "/f.md": deck_text('responseFragment = "/s.json"'),
        "/s.json": json.dumps(fields(a=STRING)),
    }
    loaded = load(files)
    # Taken for the schema, the fragment would be said not to be a string.
    assert found(loaded) == [("GS040", 3, 18)]
    assert load(files, "c").deck is None
