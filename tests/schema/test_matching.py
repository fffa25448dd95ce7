"""Two schemas are compared field by field, and graders with what they extend."""

import copy
import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.schema.builtin import BUILTIN_URIS, builtin_schema, grader_contexts
from gambit_actors.schema.matching import differences, grader_problems
from gambit_actors.schema.python_types import schema_from_type
from gambit_actors.schema.validation import Validator

SCHEMAS = "gambit://schemas/graders/"
TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def obj(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write an object schema."""
    return {"type": "object", "properties": properties, "required": list(required)}


def arr(entry: dict[str, Any]) -> dict[str, Any]:
    """Write a list schema."""
    return {"type": "array", "items": entry}


def builtin(name: str) -> dict[str, Any]:
    """Get a built-in schema for graders that may be edited."""
    schema = builtin_schema(f"{SCHEMAS}{name}.zod.ts")
    assert schema is not None
    return schema


def said(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    """List how two schemas differ, in words."""
    return [str(difference) for difference in differences(left, right)]


schemas = st.recursive(
    st.sampled_from([{}, TEXT, NUMBER, {"type": "integer"}, {"enum": ["a"]}]).map(
        copy.deepcopy
    ),
    lambda inner: (
        inner.map(arr)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
        | st.builds(
            lambda table, needed: obj(tuple(sorted(needed & table.keys())), **table),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.sets(st.sampled_from("abc")),
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (TEXT, TEXT | {"minLength": 3, "description": "x"}, []),
        (TEXT, {"enum": ["a", "b"]}, []),
        (TEXT, NUMBER, ["expected a string, is a number"]),
        (TEXT, {}, ["expected a string, is anything"]),
        (arr(TEXT), arr(NUMBER), []),
        (arr(obj(a=TEXT)), arr(obj(b=TEXT)), []),
        (obj(a=TEXT), TEXT, ["expected an object, is a string"]),
        (obj(a=TEXT), obj(a=NUMBER), ["a: expected a string, is a number"]),
        (obj(a=TEXT), obj(), ["the field 'a' is missing"]),
        (obj(), obj(a=TEXT), ["the field 'a' is not expected"]),
        (obj(("a",), a=TEXT), obj(a=TEXT), ["a: expected to be required, is optional"]),
        (obj(a=TEXT), obj(("a",), a=TEXT), ["a: expected to be optional, is required"]),
        (
            obj(a=obj(b=arr(obj(("c",), c=TEXT, d=TEXT)))),
            obj(a=obj(b=arr(obj(c=NUMBER, e=TEXT)))),
            [
                "a.b[].c: expected to be required, is optional",
                "a.b[].c: expected a string, is a number",
                "a.b[]: the field 'd' is missing",
                "a.b[]: the field 'e' is not expected",
            ],
        ),
        (
            obj(a={"type": "object", "additionalProperties": TEXT}),
            obj(a={"type": "object", "additionalProperties": NUMBER}),
            ["a.*: expected a string, is a number"],
        ),
        (
            obj(a={"prefixItems": [TEXT, TEXT]}),
            obj(a={"prefixItems": [TEXT, NUMBER]}),
            ["a[1]: expected a string, is a number"],
        ),
        (
            obj(a={"anyOf": [obj(b=TEXT), obj(c=TEXT)]}),
            obj(a={"oneOf": [obj(c=TEXT), obj(b=TEXT)]}),
            [],
        ),
        (
            obj(a={"anyOf": [obj(b=TEXT), obj(c=TEXT)]}),
            obj(a={"anyOf": [obj(b=TEXT), obj(d=TEXT)]}),
            ["a: the 2 forms to choose from are not the same"],
        ),
        (
            obj(a={"type": ["string", "null"]}),
            obj(a={"anyOf": [{"type": "null"}, TEXT]}),
            [],
        ),
        (
            obj(a=obj(b=TEXT)),
            obj(a={"$ref": "#/$defs/x"}) | {"$defs": {"x": obj(b=NUMBER)}},
            ["a.b: expected a string, is a number"],
        ),
        (obj(a=TEXT, b=TEXT), {"allOf": [obj(a=TEXT), obj(b=TEXT)]}, []),
    ],
)
def test_differences_name_the_field_and_how(
    left: dict[str, Any], right: dict[str, Any], words: list[str]
) -> None:
    """Objects match field by field at any depth; anything else by its top type."""
    assert said(left, right) == words


def test_recursive_schemas_are_compared_to_their_end() -> None:
    """A schema inside itself is compared once, and its differences are found."""
    tree = {
        "$ref": "#/$defs/t",
        "$defs": {"t": obj(name=TEXT, parts=arr({"$ref": "#/$defs/t"}))},
    }
    other = copy.deepcopy(tree)
    assert said(tree, other) == []
    other["$defs"]["t"]["properties"]["name"] = NUMBER  # type: ignore[index]  # JSON
    assert said(tree, other) == ["name: expected a string, is a number"]


def test_an_endless_reference_is_compared_without_end_in_sight() -> None:
    """A reference to itself stands for anything."""
    endless = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert said(endless, {}) == []


@pytest.mark.slow
def test_unions_that_multiply_are_compared_at_once() -> None:
    """A schema that unfolds into billions of alternatives is cut short."""
    defs: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(50)
    }
    many = {"$ref": "#/$defs/d0", "$defs": defs | {"d50": obj(a=TEXT)}}
    assert said(many, copy.deepcopy(many)) == []
    left, right = obj(a=TEXT), obj(a=NUMBER)
    for _ in range(5):
        left, right = (
            obj(x={"anyOf": [inner | {"title": str(n)} for n in range(20)]})
            for inner in (left, right)
        )
    assert said(left, right) == [
        "x: the 20 forms to choose from are too many to compare"
    ]
    endless = {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}
    assert said(endless, endless) == []


def test_a_python_type_matches_the_schema_it_stands_for() -> None:
    """Notations meet: a Python type and a schema by hand are found the same."""

    class Order(msgspec.Struct):
        sku: str
        count: int = 1

    @dataclasses.dataclass
    class Basket:
        orders: list[Order]

    by_hand = obj(
        ("orders",), orders=arr(obj(("sku",), sku=TEXT, count={"type": "integer"}))
    )
    assert said(schema_from_type(Basket), by_hand) == []


@pytest.mark.slow
@given(schemas)
def test_a_schema_matches_itself(schema: dict[str, Any]) -> None:
    """No schema differs from itself or from a copy of it."""
    assert differences(schema, schema) == []
    assert differences(schema, copy.deepcopy(schema)) == []


@pytest.mark.slow
@given(schemas, schemas)
def test_matching_is_symmetric(left: dict[str, Any], right: dict[str, Any]) -> None:
    """It does not matter which of two schemas is asked about the other."""
    assert bool(differences(left, right)) == bool(differences(right, left))


@pytest.mark.parametrize("uri", sorted(grader_contexts()))
def test_the_built_in_grader_schemas_are_compatible(uri: str) -> None:
    """A grader that declares the built-in schemas as they are is accepted."""
    context = builtin_schema(uri)
    assert context is not None
    assert len(BUILTIN_URIS) == 7
    assert grader_problems(context, builtin("grader_output")) == []


def edited(name: str, path: str, change: dict[str, Any] | None) -> dict[str, Any]:
    """Change, or take away, one field of a built-in schema."""
    schema = builtin(name)
    *folders, last = path.split(".")
    place = schema
    for key in folders:
        place = place["properties"][key]
        place = place.get("items", place)
    if change is None:
        del place["properties"][last]
    else:
        place["properties"][last] = change
    return schema


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (
            edited("contexts/turn", "session.messages.role", NUMBER),
            ["session.messages[].role: expected a string, is a number"],
        ),
        (
            edited("contexts/turn_tools", "messageToGrade.role", NUMBER),
            ["messageToGrade.role: expected a string, is a number"],
        ),
        (
            edited("contexts/conversation", "session.notes", None),
            ["session: the field 'notes' is missing"],
        ),
        (
            edited("contexts/conversation", "session.messages", TEXT),
            ["session.messages: expected a list, is a string"],
        ),
        (
            builtin("contexts/conversation") | {"required": []},
            ["session: expected to be required, is optional"],
        ),
        (TEXT, ["expected an object, is a string"]),
    ],
)
def test_a_grader_context_must_have_the_base_fields(
    context: dict[str, Any], words: list[str]
) -> None:
    """A context that fits no built-in says which field differs, and how."""
    problems = grader_problems(context, builtin("grader_output"))
    assert [str(problem) for problem in problems] == words
    assert {problem.key for problem in problems} == {"contextSchema"}


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (
            edited("grader_output", "score", TEXT),
            ["score: expected a whole number, is a string"],
        ),
        (
            edited("grader_output", "score", NUMBER),
            ["score: expected a whole number, is a number"],
        ),
        (
            edited("grader_output", "evidence", arr(NUMBER)),
            ["evidence[]: expected a string, is a number"],
        ),
        (edited("grader_output", "reason", None), ["the field 'reason' is missing"]),
        (
            builtin("grader_output") | {"required": ["score"]},
            ["reason: expected to be required, is optional"],
        ),
        (
            builtin("grader_output") | {"required": ["score", "reason", "evidence"]},
            ["evidence: expected to be optional, is required"],
        ),
    ],
)
def test_a_grader_response_must_be_grader_output(
    response: dict[str, Any], words: list[str]
) -> None:
    """A response schema that is not grader_output says which field differs."""
    problems = grader_problems(builtin("contexts/turn"), response)
    assert [str(problem) for problem in problems] == words
    assert {problem.key for problem in problems} == {"responseSchema"}


@pytest.mark.parametrize("place", ["mood", "session.mood", "session.messages.mood"])
def test_a_grader_may_add_optional_fields_only(place: str) -> None:
    """Further fields are welcome at any depth, if they are optional."""
    context = edited("contexts/turn", place, TEXT)
    response = edited("grader_output", "mood", TEXT)
    assert grader_problems(context, response) == []
    response["required"].append("mood")
    assert [str(problem) for problem in grader_problems(context, response)] == [
        "extra field 'mood' must be optional"
    ]
    session = context["properties"]["session"]
    message = session["properties"]["messages"]["items"]
    for schema in (context, session, message):
        schema["required"] = [*schema.get("required", []), "mood"]
    (problem,) = grader_problems(context, builtin("grader_output"))
    assert problem.message == "extra field 'mood' must be optional"


def test_extra_fields_that_are_declared_survive_validation() -> None:
    """A grader sees the fields it added, and not those that nobody declared."""
    validator = Validator(edited("grader_output", "mood", TEXT))
    value = {"score": 1, "reason": "ok", "mood": "good"}
    assert validator.check(value | {"other": 1}).value == value
