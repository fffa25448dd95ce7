"""Values are filled, stripped and checked, and what is wrong is said in words."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import SchemaError
from gambit_actors.schema.validation import Checked, Validator

STRIP = {"additionalProperties": False, "x-gambit-unknownKeys": "strip"}
REFUSE = {"additionalProperties": False, "x-gambit-unknownKeys": "refuse"}

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order": {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "sku": {"type": "string"},
                            "count": {"type": "integer", "default": 1},
                        },
                        "required": ["sku"],
                        **STRIP,
                    },
                }
            },
            "required": ["items"],
            **STRIP,
        }
    },
    "required": ["order"],
    **STRIP,
}

TREE: dict[str, Any] = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "size": {"type": "integer", "default": 0},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            },
            "required": ["name"],
            **STRIP,
        }
    },
}


def tagged(kind: str, **properties: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write one alternative of a discriminated union."""
    return {
        "type": "object",
        "properties": {"kind": {"type": "string", "const": kind}, **properties},
        "required": ["kind", *(k for k, p in properties.items() if "default" not in p)],
        **STRIP,
    }


SHAPE: dict[str, Any] = {
    "anyOf": [
        tagged("circle", radius={"type": "number"}),
        tagged("square", side={"type": "number", "default": 1}),
        {"type": "null"},
    ]
}

ANY_OF_THEM = {
    "anyOf": [SHAPE, ORDER, {"$ref": "#/$defs/tree"}],
    "$defs": TREE["$defs"],
}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["order", "items", "sku", "kind", "parts"]) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def said(schema: dict[str, Any], value: Any) -> list[str]:  # noqa: ANN401
    """List what is wrong with a value, in words."""
    return [str(problem) for problem in Validator(schema).check(value).problems]


@pytest.mark.parametrize(
    ("schema", "value", "problems"),
    [
        ({"type": "string"}, 7, ["expected a string, got 7"]),
        ({"type": ["string", "null"]}, 7, ["expected null or a string, got 7"]),
        ({"type": "integer"}, 1.5, ["expected a whole number, got 1.5"]),
        ({"type": "boolean"}, "yes", ['expected true or false, got "yes"']),
        ({"type": "array"}, {}, ["expected a list, got {}"]),
        ({"required": ["a", "b"]}, {"b": 1}, ["the key 'a' is missing"]),
        ({"enum": ["a", 1]}, 2, ['expected one of "a", 1, got 2']),
        ({"const": "a"}, "b", ['expected "a", got "b"']),
        ({"minLength": 2}, "a", ["expected at least 2 characters, got 1"]),
        ({"maxLength": 1}, "abc", ["expected at most 1 character, got 3"]),
        ({"minItems": 1}, [], ["expected at least 1 entry, got 0"]),
        ({"maxItems": 2}, [1, 2, 3], ["expected at most 2 entries, got 3"]),
        ({"minProperties": 1}, {}, ["expected at least 1 key, got 0"]),
        ({"maxProperties": 0}, {"a": 1}, ["expected at most 0 keys, got 1"]),
        ({"minimum": -3}, -4, ["expected at least -3, got -4"]),
        ({"maximum": 3}, 4, ["expected at most 3, got 4"]),
        ({"exclusiveMinimum": 0}, 0, ["expected more than 0, got 0"]),
        ({"exclusiveMaximum": 9}, 9, ["expected less than 9, got 9"]),
        ({"multipleOf": 5}, 7, ["expected a multiple of 5, got 7"]),
        ({"pattern": "^a+$"}, "b", ['expected text that matches "^a+$", got "b"']),
        ({"format": "email"}, "b", ['expected an e-mail address, got "b"']),
        ({"format": "uri"}, "b c", ['expected a URL, got "b c"']),
        ({"format": "uuid"}, "b", ['expected a UUID, got "b"']),
        (
            {"format": "date-time"},
            "b",
            ['expected a date and time such as 2026-01-31T12:00:00Z, got "b"'],
        ),
        ({"uniqueItems": True}, [1, 1], ["two entries of [1,1] are the same"]),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"a": 1, "b": 2, "c": 3},
            ["the keys 'b', 'c' are not allowed"],
        ),
        ({"unevaluatedProperties": False}, {"b": 1}, ["the key 'b' is not allowed"]),
        (
            {"prefixItems": [{}], "unevaluatedItems": False},
            [1, 2],
            ["1 more entries than are allowed"],
        ),
        (
            {"prefixItems": [{}], "items": False},
            [1, 2],
            ["[1]: nothing is allowed here, got 2"],
        ),
        ({"not": {"type": "string"}}, "a", ['"a" is of a form that is ruled out here']),
        (
            {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
            5,
            ["5 fits more than one of the forms, and must fit one only"],
        ),
        (
            {"contains": {"type": "string"}},
            [1],
            ["too few entries are of the form that some must have"],
        ),
        (
            {"contains": {"type": "string"}, "maxContains": 1},
            ["a", "b"],
            ["too many entries are of the form that only some may have"],
        ),
        (
            {"propertyNames": {"maxLength": 1}},
            {"ab": 1},
            ['the key "ab" is not allowed: expected at most 1 character, got 2'],
        ),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["the key 'b' is missing"]),
        (
            {"properties": {"a b": {"type": "null"}}},
            {"a b": 1},
            ['["a b"]: expected null, got 1'],
        ),
        (
            {"type": "string"},
            ["long" * 20],
            ['expected a string, got ["longlonglonglonglonglonglonglonglongl…'],
        ),
    ],
)
def test_every_keyword_is_explained(
    schema: dict[str, Any],
    value: Any,  # noqa: ANN401
    problems: list[str],
) -> None:
    """Each keyword that refuses a value says so in plain words, values cut short."""
    assert said(schema, value) == problems


@pytest.mark.parametrize(
    ("schema", "value", "problems"),
    [
        (SHAPE, 5, ["expected an object or null, got 5"]),
        (
            SHAPE,
            {"kind": "oval"},
            ['kind: expected one of "circle", "square", got "oval"'],
        ),
        (SHAPE, {"kind": "circle"}, ["the key 'radius' is missing"]),
        (
            SHAPE,
            {"kind": "circle", "radius": "wide", "junk": 1},
            ['radius: expected a number, got "wide"'],
        ),
        (
            {"anyOf": [{"minLength": 3}, {"pattern": "^x"}]},
            "ab",
            [
                (
                    "fits none of 2 forms: expected at least 3 characters, got 2 | "
                    'expected text that matches "^x", got "ab"'
                )
            ],
        ),
        (
            {"anyOf": [{"const": 1}, {"enum": [2, 3]}]},
            4,
            ["expected one of 1, 2, 3, got 4"],
        ),
    ],
)
def test_a_union_names_the_closest_form(
    schema: dict[str, Any],
    value: Any,  # noqa: ANN401
    problems: list[str],
) -> None:
    """A value that fits no alternative is held against the one it was meant to be."""
    assert said(schema, value) == problems


def test_all_problems_come_at_once_with_their_paths() -> None:
    """A value with several faults gets them all in one answer."""
    items = [{"sku": "a"}, {"sku": 7}, {"count": "x"}]
    assert sorted(said(ORDER, {"order": {"items": items}})) == [
        "order.items[1].sku: expected a string, got 7",
        'order.items[2].count: expected a whole number, got "x"',
        "order.items[2]: the key 'sku' is missing",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "filled"),
    [
        (
            ORDER,
            {"order": {"items": [{"sku": "a", "junk": 1}]}, "junk": 2},
            {"order": {"items": [{"sku": "a", "count": 1}]}},
        ),
        (
            TREE,
            {"name": "a", "parts": [{"name": "b", "junk": 1, "parts": []}]},
            {
                "name": "a",
                "size": 0,
                "parts": [{"name": "b", "size": 0, "parts": []}],
            },
        ),
        (SHAPE, {"kind": "square", "junk": 1}, {"kind": "square", "side": 1}),
        (SHAPE, None, None),
        (
            {"type": "array", "prefixItems": [SHAPE]},
            [{"kind": "square"}, 1],
            [{"kind": "square", "side": 1}, 1],
        ),
        (
            {"type": "object", "additionalProperties": SHAPE},
            {"a": {"kind": "square"}},
            {"a": {"kind": "square", "side": 1}},
        ),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"default": 1}}, **STRIP},
                    {"type": "object", "properties": {"b": {"default": 2}}, **STRIP},
                ]
            },
            {"b": 3, "c": 4},
            {"b": 3, "a": 1},
        ),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"default": 1}}},
                    {"$ref": "#/$defs/b"},
                ],
                "unevaluatedProperties": False,
                "x-gambit-unknownKeys": "strip",
                "$defs": {"b": {"type": "object", "properties": {"b": {}}}},
            },
            {"b": 3, "c": 4},
            {"b": 3, "a": 1},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/d"}},
                "$defs": {
                    "d": {
                        "type": "object",
                        "default": {},
                        "properties": {"b": {"default": 5}},
                    }
                },
            },
            {},
            {"a": {"b": 5}},
        ),
        ({"type": "object", "properties": {"a": {}}}, {"b": 1}, {"b": 1}),
    ],
)
def test_defaults_are_filled_in_and_unknown_keys_dropped(
    schema: dict[str, Any],
    value: Any,  # noqa: ANN401
    filled: Any,  # noqa: ANN401
) -> None:
    """Zod's changes are made at every depth, in lists, unions and references."""
    before = copy.deepcopy(value)
    assert Validator(schema).check(value) == Checked(value=filled)
    assert value == before


def test_a_strict_object_refuses_unknown_keys() -> None:
    """Where the schema says refuse, an unknown key is a problem that names it."""
    schema = {"type": "object", "properties": {"a": {}}, **REFUSE}
    assert said(schema, {"a": 1, "b": 2}) == ["the key 'b' is not allowed"]


def test_a_default_is_not_shared_between_values() -> None:
    """Changing a filled value does not change the schema's default."""
    validator = Validator({"type": "object", "properties": {"a": {"default": []}}})
    validator.check({}).value["a"].append(1)
    assert validator.check({}).value == {"a": []}


@pytest.mark.parametrize(
    ("schema", "path", "problem"),
    [
        ({"$ref": "http://x.test/y"}, "$ref", "is outside the schema, and is not"),
        ({"items": {"$ref": "other.json"}}, "items.$ref", "is outside the schema"),
        ({"items": {"$ref": "#/$defs/no"}}, "items.$ref", "points at nothing"),
        ({"properties": {"a": {"type": "text"}}}, "properties.a.type", '"string"'),
        ({"properties": 3}, "properties", "expected an object, got 3"),
        ({"minLength": -1}, "minLength", "expected at least 0, got -1"),
        ({"pattern": "("}, "pattern", "expected a regular expression"),
        ({"pattern": r"(a)\1"}, "pattern", "expected a regular expression"),
        ({"pattern": "((a{0,999}){0,999}){0,999}"}, "pattern", "regular expression"),
        ({"const": object()}, "", "not a JSON document"),
    ],
)
def test_an_unusable_schema_says_where_and_why(
    schema: dict[str, Any], path: str, problem: str
) -> None:
    """A schema that is invalid or leads outside itself is refused in words."""
    with pytest.raises(SchemaError) as caught:
        Validator(schema)
    assert caught.value.path == path
    assert problem in caught.value.problem


def test_a_schema_that_contains_itself_is_refused() -> None:
    """A Python object that is its own part, or is too deep, is no schema."""
    endless: dict[str, Any] = {}
    endless["items"] = endless
    with pytest.raises(SchemaError, match="nested too deeply"):
        Validator(endless)


def test_a_slow_pattern_takes_linear_time() -> None:
    """A pattern that ruins backtracking engines is answered at once."""
    problems = said({"pattern": "^(a+)+$"}, "a" * 100_000 + "b")
    assert len(problems) == 1


def doubling(levels: int) -> dict[str, Any]:
    """Write a short schema with two to the power of ``levels`` ways to try."""
    defs: dict[str, Any] = {
        f"d{level}": {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": defs | {f"d{levels}": {"type": "string"}}}


def test_unions_that_multiply_are_refused_not_tried() -> None:
    """A value that would take years to check is refused at once, and says why."""
    assert said(doubling(60), 3) == [
        "the schema has too many ways to read this value to try them all"
    ]
    assert said(doubling(12), 3) == [
        "fits none of the forms of the schema, which are too many to list"
    ]
    assert said({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, 3) == [
        "the schema has too many ways to read this value to try them all"
    ]


def test_a_union_that_strips_by_itself_is_compiled_at_once() -> None:
    """Looking for the keys that a recursive schema knows looks at each part once."""
    schema = {"anyOf": [{"$ref": "#"} for _ in range(20)], **STRIP}
    assert len(said(schema, {"a": 1})) == 1


def test_recursive_unions_are_bounded_by_the_value() -> None:
    """A union within itself is counted per value, and nested values end it."""
    entry = {"type": "array", "items": {"$ref": "#/$defs/a"}}
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [entry, dict(entry)]}}}
    value: Any = 1
    for _ in range(100):
        value = [value]
    assert len(said(schema, value)) == 1


def test_a_tagged_recursive_union_takes_deep_values() -> None:
    """Tags keep a recursive union cheap, so deep values of it are read."""
    child = {"$ref": "#/$defs/e", "default": None}
    kinds = [tagged(f"k{n}", child=child) for n in range(10)]
    schema = {
        "$ref": "#/$defs/e",
        "$defs": {"e": {"anyOf": [*kinds, {"type": "null"}]}},
    }
    value: Any = {"kind": "k9"}
    for _ in range(30):
        value = {"kind": "k9", "child": value, "junk": 1}
    checked = Validator(schema).check(value)
    assert checked.problems == ()
    assert "junk" not in checked.value["child"]["child"]


@pytest.mark.slow
def test_a_union_of_ten_thousand_forms_is_bounded() -> None:
    """A huge union is compiled, fits its last form, and says little when it fails."""
    forms = [tagged(f"k{n}", a={"default": n}) for n in range(10_000)]
    validator = Validator({"anyOf": forms})
    assert validator.check({"kind": "k9999"}).value == {"kind": "k9999", "a": 9999}
    (problem,) = validator.check({"kind": "no"}).problems
    assert problem.path == "kind"
    assert len(problem.message) < 300


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        {"order": {"items": [{"sku": ["\ud800"]}]}},
        {1: 2},
        10**400,
        {"order": 10**400},
        float("nan"),
        float("inf"),
        object(),
        {"order": {"items": b"bytes"}},
    ],
)
def test_what_is_not_json_is_a_problem_and_not_an_exception(value: Any) -> None:  # noqa: ANN401
    """Values that JSON does not have are refused in words."""
    assert Validator(ORDER).check(value).problems


def test_a_value_nested_too_deeply_is_a_problem() -> None:
    """Depth without end is refused, not a crash."""
    value: Any = {"name": "a"}
    for _ in range(20_000):
        value = {"name": "a", "parts": [value]}
    assert said(TREE, value) == ["nested too deeply"]


@pytest.mark.slow
@given(json_values, st.sampled_from([ORDER, TREE, SHAPE, ANY_OF_THEM]))
def test_no_json_value_raises(value: Any, schema: dict[str, Any]) -> None:  # noqa: ANN401
    """Whatever the value, a check ends in a value or in problems, and edits nothing."""
    before = copy.deepcopy(value)
    checked = Validator(schema).check(value)
    assert value == before
    assert all(problem.message for problem in checked.problems)


@pytest.mark.slow
@given(json_values)
def test_a_schema_that_changes_nothing_returns_the_value(value: Any) -> None:  # noqa: ANN401
    """Without defaults or stripping, a valid value comes back as it was."""
    checked = Validator({"not": {"type": "string", "minLength": 99}}).check(value)
    assert checked.is_valid
    assert checked.value is value


rows = st.fixed_dictionaries(
    {"sku": st.text(st.characters(codec="utf-8"))}, optional={"count": st.integers()}
)


@pytest.mark.slow
@given(st.lists(st.tuples(rows, st.dictionaries(st.text(), json_values, max_size=3))))
def test_stripping_keeps_every_declared_key(
    pairs: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """Declared keys survive with their values, whatever stands beside them."""
    items = [junk | row for row, junk in pairs]
    declared = ("sku", "count")
    checked = Validator(ORDER).check({"order": {"items": items}})
    for before, after in zip(items, checked.value["order"]["items"], strict=True):
        assert set(after) == set(declared)
        assert all(after[key] == before[key] for key in declared if key in before)


@pytest.mark.slow
@given(json_values)
def test_checking_again_changes_nothing(value: Any) -> None:  # noqa: ANN401
    """A value that was filled and is valid is its own filled form."""
    checked = Validator(ANY_OF_THEM).check(value)
    if checked.is_valid:
        assert Validator(ANY_OF_THEM).check(checked.value) == checked
