"""A reference in a deck becomes a schema; a mistake in it becomes a diagnostic."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gambit_actors.errors import SchemaError
from gambit_actors.schema.diagnostics import CODES
from gambit_actors.schema.positions import position_of
from gambit_actors.schema.python_types import DescribedType, schema_from_type
from gambit_actors.schema.schemas import (
    LoadedSchema,
    SchemaCache,
    joined,
    load_schema,
)
from gambit_actors.schema.validation import Validator

DECK = "decks/a/PROMPT.md"
ZOD = """import { z } from "npm:zod";
import { part } from "./part.zod.ts";
export default z.object({ name: z.string(), part: part.optional() });
"""
PART = """import { z } from "npm:zod";
export const part = z.object({ size: z.number().default(1) });
"""


class Struct(msgspec.Struct):
    """A type in one of the forms that are understood."""

    name: str
    size: int = 1


@dataclasses.dataclass
class Data:
    """The same as a dataclass."""

    name: str
    size: int = 1


class Typed(TypedDict):
    """Nearly the same as a TypedDict, which has no defaults."""

    name: str
    size: int


def reader(
    files: dict[str, str], asked: list[str] | None = None
) -> Callable[[str], str | None]:
    """Stand for a disk with these files."""

    def read(path: str) -> str | None:
        if asked is not None:
            asked.append(path)
        return files.get(path)

    return read


def load(reference: str, files: dict[str, str], **more: Any) -> Any:  # noqa: ANN401
    """Load a schema from a disk with these files."""
    return load_schema(reference, base=DECK, read_file=reader(files), **more)


@pytest.mark.spec("DK-16")
def test_a_zod_file_is_read_with_what_it_imports() -> None:
    """A .zod.ts beside the deck becomes JSON Schema that keeps Zod's ways."""
    files = {"decks/a/order.zod.ts": ZOD, "decks/a/part.zod.ts": PART}
    loaded = load("./order.zod.ts", files)
    assert [d for d in loaded.diagnostics if d.severity == "error"] == []
    assert loaded.source == "decks/a/order.zod.ts"
    checked = Validator(loaded.schema).check({"name": "a", "part": {}, "junk": 1})
    assert checked.value == {"name": "a", "part": {"size": 1}}
    assert checked.is_valid


EVERYTHING = """import { z } from "zod";
const A = z.object({ a: z.string().default("x") });
const B = z.object({ b: z.number().optional() });
const Node: z.ZodType<any> = z.lazy(() =>
  z.object({ v: z.number().default(1), next: Node.nullable().optional() }));
export default z.object({
  both: A.and(B),
  table: z.record(A),
  list: Node,
  either: z.union([
    z.object({ k: z.literal("s"), s: z.string() }),
    z.object({ k: z.literal("n"), d: z.number().default(4) }),
  ]),
  strict: A.strict().optional(),
  open: z.object({}).passthrough().optional(),
  pair: z.tuple([z.string(), A]).optional(),
});
"""


@pytest.mark.spec("DK-16")
def test_what_zod_files_say_is_what_values_get() -> None:
    """Intersections, records, recursion, unions and tuples are filled and checked."""
    loaded = load("e.zod.ts", {"decks/a/e.zod.ts": EVERYTHING})
    validator = Validator(loaded.schema)
    junk = {"junk": 1}
    good = {
        "both": {"b": 1} | junk,
        "table": {"t": junk},
        "list": {"next": {"next": None} | junk},
        "either": {"k": "n"} | junk,
        "open": junk,
        "pair": ["p", junk],
    }
    checked = validator.check(good | junk)
    assert checked.problems == ()
    assert checked.value == {
        "both": {"b": 1, "a": "x"},
        "table": {"t": {"a": "x"}},
        "list": {"next": {"next": None, "v": 1}, "v": 1},
        "either": {"k": "n", "d": 4},
        "open": junk,
        "pair": ["p", {"a": "x"}],
    }
    bad = good | {"strict": junk, "both": {"b": "1"}, "either": {"k": "q"}, "table": 1}
    assert sorted(map(str, validator.check(bad).problems)) == [
        'both.b: expected a number, got "1"',
        'either.k: expected one of "s", "n", got "q"',
        "strict: the key 'junk' is not allowed",
        "table: expected an object, got 1",
    ]


@pytest.mark.spec("DK-16")
def test_a_json_file_is_a_schema_as_it_is() -> None:
    """A .json file is JSON Schema, taken as written."""
    loaded = load("../b/s.json", {"decks/b/s.json": '\ufeff{"type": "string"}'})
    assert (loaded.schema, loaded.diagnostics) == ({"type": "string"}, ())
    assert loaded.source == "decks/b/s.json"


@pytest.mark.spec("DK-16")
@pytest.mark.parametrize("kind", [Struct, Data, Typed])
def test_a_python_type_is_a_schema(kind: type) -> None:
    """A Struct, a dataclass and a TypedDict are read with their fields and types."""
    asked = []

    def describe(path: str, name: str) -> DescribedType:
        asked.append((path, name))
        return DescribedType(schema=schema_from_type(kind))

    loaded = load("types.py:Kind", {"decks/a/types.py": ""}, describe_type=describe)
    assert asked == [("decks/a/types.py", "Kind")]
    validator = Validator(loaded.schema)
    assert validator.check({"name": "a", "size": 1}).is_valid
    assert [str(p) for p in validator.check({"name": 7, "size": 1}).problems] == [
        "name: expected a string, got 7"
    ]


def test_an_attrs_class_is_a_schema() -> None:
    """A class made by attrs is read like a dataclass."""
    attrs = pytest.importorskip("attrs")
    kind = attrs.make_class("Kind", {"name": attrs.field(type=str)})
    assert Validator(schema_from_type(kind)).check({"name": 7}).problems


def test_a_type_without_a_json_form_is_refused() -> None:
    """A type that JSON cannot hold is an error that names it."""
    with pytest.raises(SchemaError, match="range has no JSON Schema"):
        schema_from_type(range)


def missing_type(path: str, name: str) -> DescribedType:
    """Stand for an import that finds nothing."""
    message = f"there is no {name} in {path}"
    raise LookupError(message)


def no_json_type(_path: str, _name: str) -> DescribedType:
    """Stand for a type that JSON cannot hold."""
    return DescribedType(schema=schema_from_type(range))


def look_around_type(_path: str, _name: str) -> DescribedType:
    """Stand for a type with a pattern that is not run."""
    return DescribedType(schema={"type": "string", "pattern": "(?=a)b"})


@pytest.mark.parametrize(
    ("reference", "files", "more", "code", "place"),
    [
        ("a.json", {}, {}, "GS040", (DECK, 1, 1)),
        ("a.zod.ts", {}, {}, "GS040", (DECK, 1, 1)),
        ("a.py:B", {}, {}, "GS040", (DECK, 1, 1)),
        ("a.yaml", {}, {}, "GS041", (DECK, 1, 1)),
        ("", {}, {}, "GS041", (DECK, 1, 1)),
        ("a.json", {"a.json": '{\n  "type": }'}, {}, "GS044", ("a.json", 2, 11)),
        ("a.json", {"a.json": ""}, {}, "GS044", ("a.json", 1, 1)),
        ("a.json", {"a.json": '{"const": NaN}'}, {}, "GS044", ("a.json", 1, 1)),
        ("a.json", {"a.json": "[" * 100_000}, {}, "GS044", ("a.json", 1, 1)),
        ("a.json", {"a.json": "9" * 9_999}, {}, "GS044", ("a.json", 1, 1)),
        ("a.json", {"a.json": "\n []"}, {}, "GS045", ("a.json", 2, 2)),
        (
            "a.json",
            {"a.json": '{"properties": {\n "a": {"minLength": -1}}}'},
            {},
            "GS045",
            ("a.json", 2, 21),
        ),
        (
            "a.json",
            {"a.json": '{"items": {"$ref": "http://x.test/y"}}'},
            {},
            "GS045",
            ("a.json", 1, 20),
        ),
        ("a.py:B", {"a.py": ""}, {}, "GS046", (DECK, 1, 1)),
        *(
            ("a.py:B", {"a.py": ""}, {"describe_type": describe}, code, (DECK, 1, 1))
            for describe, code in [
                (missing_type, "GS046"),
                (no_json_type, "GS047"),
                (look_around_type, "GS047"),
            ]
        ),
    ],
)
def test_a_mistake_is_a_diagnostic_with_a_place(
    reference: str,
    files: dict[str, str],
    more: dict[str, Any],
    code: str,
    place: tuple[str, int, int],
) -> None:
    """Whatever is wrong with a reference or its file is said with file and place."""
    disk = {f"decks/a/{name}": text for name, text in files.items()}
    loaded = load(reference, disk, **more)
    (note,) = loaded.diagnostics
    assert loaded.schema is None
    assert note.severity == "error"
    file = place[0] if place[0] == DECK else f"decks/a/{place[0]}"
    assert (note.code, note.file, note.line, note.column) == (code, file, *place[1:])
    assert code in CODES


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ('{"items": [{"type": "string"}], "additionalItems": false}', True),
        ('{"properties": {"properties": {"items": [{}]}}}', True),
        ('{"properties": {"items": [{}]}}', False),
        ('{"items": 3}', False),
    ],
)
def test_an_old_tuple_is_told_its_new_name(text: str, is_told: bool) -> None:
    """A list under items, as drafts before 2020-12 wrote it, is called prefixItems."""
    loaded = load("s.json", {"decks/a/s.json": text})
    (note,) = loaded.diagnostics
    assert note.code == "GS045"
    assert ("prefixItems" in note.message) == is_told


def test_a_loaded_schema_compiles_its_validator_once() -> None:
    """All who ask a loaded schema for its validator share one; equality ignores it."""
    files = {"decks/a/s.json": '{"type": "string"}'}
    first, second = load("s.json", files), load("s.json", files)
    assert first.validator is first.validator
    assert first.validator is not second.validator
    assert first == second
    assert [str(p) for p in first.validator.check(7).problems] == [
        "expected a string, got 7"
    ]


def test_a_compiled_validator_does_not_change_a_loaded_schema() -> None:
    """Compiling leaves equality and the printed form of a loaded schema alone."""
    compiled, fresh = (LoadedSchema(schema={}, source="s") for _ in range(2))
    assert compiled.validator.schema == {}
    assert compiled == fresh
    assert repr(compiled) == repr(fresh)


def test_without_a_schema_there_is_no_validator() -> None:
    """A reference that turned out to be nothing says so when a validator is wanted."""
    loaded = load("s.json", {})
    with pytest.raises(SchemaError, match=r"decks/a/s\.json has no schema"):
        _ = loaded.validator


@pytest.mark.parametrize(
    ("base", "reference", "path"),
    [
        ("decks/a/PROMPT.md", "s.json", "decks/a/s.json"),
        ("decks/a/PROMPT.md", "./x/../s.json", "decks/a/s.json"),
        ("decks/a/PROMPT.md", "../s.json", "decks/s.json"),
        ("PROMPT.md", "../s.json", "../s.json"),
        ("../PROMPT.md", "../s.json", "../../s.json"),
        ("/a/PROMPT.md", "../../s.json", "/../s.json"),
        ("/a/PROMPT.md", "/b/s.json", "/b/s.json"),
    ],
)
def test_paths_are_relative_to_the_file_that_names_them(
    base: str, reference: str, path: str
) -> None:
    """A reference is looked up beside the file it is written in."""
    assert joined(base, reference) == path


@pytest.mark.spec("DK-17")
@pytest.mark.parametrize("changed", ["decks/a/order.zod.ts", "decks/a/part.zod.ts"])
def test_a_changed_file_is_seen_at_once(changed: str) -> None:
    """A new text of a schema, or of what it imports, counts from the next load on."""
    files = {"decks/a/order.zod.ts": ZOD, "decks/a/part.zod.ts": PART}
    cache = SchemaCache()

    def cached() -> Any:  # noqa: ANN401
        return cache.load("order.zod.ts", base=DECK, read_file=reader(files))

    first = cached()
    assert cached() is first
    files[changed] = (
        files[changed]
        .replace("z.string()", "z.boolean()")
        .replace("z.number().default(1)", "z.boolean()")
    )
    second = cached()
    assert second.schema != first.schema
    assert cached() is second


@pytest.mark.spec("DK-17")
def test_a_file_that_appears_or_goes_is_seen_at_once() -> None:
    """A missing file is not remembered as missing, nor a present one as present."""
    files: dict[str, str] = {}
    cache = SchemaCache()

    def cached() -> Any:  # noqa: ANN401
        return cache.load("s.json", base=DECK, read_file=reader(files))

    assert cached().schema is None
    files["decks/a/s.json"] = "{}"
    assert cached().schema == {}
    del files["decks/a/s.json"]
    assert cached().schema is None


def test_an_unchanged_file_is_not_parsed_again() -> None:
    """As long as the texts are the same, the same schema object is handed out."""
    cache = SchemaCache()
    asked: list[str] = []
    read = reader({"decks/a/s.json": "{}"}, asked)
    first = cache.load("s.json", base=DECK, read_file=read)
    assert cache.load("s.json", base=DECK, read_file=read) is first
    assert asked == ["decks/a/s.json"] * 2


@pytest.mark.spec("DK-17")
@pytest.mark.parametrize("changed", ["decks/a/types.py", "decks/a/sizes.py"])
def test_a_changed_python_file_is_seen_at_once(changed: str) -> None:
    """A type is described again when its module changed, or what that imports."""
    files = {"decks/a/types.py": "old", "decks/a/sizes.py": "old"}
    cache = SchemaCache()

    def describe(_path: str, _name: str) -> DescribedType:
        title = " ".join(files.values())
        return DescribedType(schema={"title": title}, files=("decks/a/sizes.py",))

    def cached() -> Any:  # noqa: ANN401
        return cache.load(
            "types.py:Kind", base=DECK, read_file=files.get, describe_type=describe
        )

    first = cached()
    assert cached() is first
    files[changed] = "new"
    assert "new" in cached().schema["title"]


@pytest.mark.spec("DK-17")
@pytest.mark.parametrize(
    "problem", [LookupError("it has a broken sibling"), SchemaError("", "no JSON form")]
)
def test_a_type_that_could_not_be_had_is_asked_for_again(problem: Exception) -> None:
    """What was wrong may have been in any file, so a failure is not remembered."""
    answers: list[DescribedType | Exception] = [problem, DescribedType(schema={})]
    cache = SchemaCache()

    def describe(_path: str, _name: str) -> DescribedType:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cached() -> Any:  # noqa: ANN401
        read = reader({"decks/a/types.py": ""})
        return cache.load(
            "types.py:Kind", base=DECK, read_file=read, describe_type=describe
        )

    assert cached().schema is None
    assert cached().schema == {}
    assert cached().schema == {}


def test_the_schema_not_asked_for_longest_is_forgotten() -> None:
    """A full cache makes room by dropping what was least recently used."""
    cache = SchemaCache(max_schemas=2)
    names = ("a.json", "b.json", "c.json")
    files = {f"decks/a/{name}": "{}" for name in names}

    def cached(name: str) -> LoadedSchema:
        return cache.load(name, base=DECK, read_file=reader(files))

    a, b = cached("a.json"), cached("b.json")
    assert cached("a.json") is a
    c = cached("c.json")
    assert cached("a.json") is a
    assert cached("c.json") is c
    assert cached("b.json") is not b


@pytest.mark.slow
@given(st.text() | st.text(alphabet='{}[]",:019truefalsn\\u \n'))
@example('{"":true}')
def test_any_text_is_a_schema_or_a_diagnostic(text: str) -> None:
    """No text in a .json file raises, and every finding is inside the file."""
    loaded = load("s.json", {"decks/a/s.json": text})
    is_refused = any(note.severity == "error" for note in loaded.diagnostics)
    assert (loaded.schema is None) == is_refused
    lines = text.removeprefix("\ufeff").split("\n")
    for note in loaded.diagnostics:
        assert 1 <= note.line <= len(lines)
        assert 1 <= note.column <= len(lines[note.line - 1]) + 1


@pytest.mark.parametrize(
    ("text", "steps", "place"),
    [
        ('{"a": 1}', ("a",), (1, 7)),
        ('{"a": {"b": 1},\n "b": 2}', ("b",), (2, 7)),
        ('{"a": [1, [2, 3],\n {"c": 4}]}', ("a", 2, "c"), (2, 8)),
        ('{"a\\"}": [], "b": ":"}', ("b",), (1, 19)),
        ('{"\\u0061": 5}', ("a",), (1, 12)),
        ('{"a": 1}', ("x", "y"), (1, 1)),
        ("  7", ("a",), (1, 3)),
    ],
)
def test_a_value_is_found_in_its_text(
    text: str, steps: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    """Keys lead to the line and column of a value, whatever stands in strings."""
    assert position_of(text, steps) == place
