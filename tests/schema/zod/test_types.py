"""Constructors and methods of Zod, each with the JSON Schema it stands for."""

import jsonschema_rs
import pytest

from gambit_actors.openresponses.base import JSONValue
from tests.schema.zod.reading import IMPORT, codes, read, schema_of, stripping

S = {"type": "string"}
N = {"type": "number"}
NULL = {"type": "null"}
SAFE = 2**53 - 1

PLAIN: list[tuple[str, JSONValue]] = [
    ("z.string()", S),
    ("z.number()", N),
    ("z.boolean()", {"type": "boolean"}),
    ("z.bigint()", {"type": "integer"}),
    ("z.null()", NULL),
    ("z.any()", {}),
    ("z.unknown()", {}),
    ("z.never()", {"not": {}}),
    ("z.undefined()", {"not": {}}),
    ("z.void()", {"not": {}}),
    ("z.int()", {"type": "integer", "minimum": -SAFE, "maximum": SAFE}),
    ("z.int32()", {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
    ("z.literal('a')", {"type": "string", "const": "a"}),
    ("z.literal(-1.5)", {"type": "number", "const": -1.5}),
    ("z.literal(true)", {"type": "boolean", "const": True}),
    ("z.literal(null)", {"type": "null", "const": None}),
    ("z.literal(['a', 1])", {"type": ["string", "number"], "enum": ["a", 1]}),
    ("z.literal([1, true])", {"type": ["number", "boolean"], "enum": [1, True]}),
    ("z.enum(['a', 'b'])", {"type": "string", "enum": ["a", "b"]}),
    ("z.enum(['a', 'b', 'c']).exclude(['b'])", {"type": "string", "enum": ["a", "c"]}),
    ("z.enum(['a', 'b']).extract(['b'])", {"type": "string", "const": "b"}),
    (
        "z.nativeEnum({ A: 'a', B: 2 })",
        {"type": ["string", "number"], "enum": ["a", 2]},
    ),
    ("z.enum({ description: 'a' })", {"type": "string", "const": "a"}),
    ("z.array(z.string())", {"type": "array", "items": S}),
    ("z.string().array().nonempty()", {"type": "array", "items": S, "minItems": 1}),
    (
        "z.array(z.number()).min(1).max(3)",
        {"type": "array", "items": N, "minItems": 1, "maxItems": 3},
    ),
    (
        "z.array(z.number()).length(2)",
        {"type": "array", "items": N, "minItems": 2, "maxItems": 2},
    ),
    (
        "z.tuple([z.string(), z.number()])",
        {"type": "array", "prefixItems": [S, N], "items": False, "minItems": 2},
    ),
    (
        "z.tuple([z.string(), z.number().optional()]).rest(z.null())",
        {"type": "array", "prefixItems": [S, N], "items": NULL, "minItems": 1},
    ),
    ("z.tuple([])", {"type": "array", "items": False}),
    ("z.record(z.number())", {"type": "object", "additionalProperties": N}),
    ("z.record(z.string(), z.number())", {"type": "object", "additionalProperties": N}),
    ("z.record(z.any())", {"type": "object", "additionalProperties": {}}),
    (
        "z.record(z.enum(['a', 'b']), z.number())",
        {
            "type": "object",
            "additionalProperties": N,
            "propertyNames": {"enum": ["a", "b"]},
        },
    ),
    (
        "z.record(z.string().min(2), z.any())",
        {
            "type": "object",
            "additionalProperties": {},
            "propertyNames": {"minLength": 2},
        },
    ),
    ("z.union([z.string(), z.number()])", {"type": ["string", "number"]}),
    ("z.string().or(z.number()).or(z.null())", {"type": ["string", "number", "null"]}),
    (
        "z.union([z.literal('a'), z.literal('b')])",
        {"type": "string", "enum": ["a", "b"]},
    ),
    (
        "z.union([z.string().min(1), z.number()])",
        {"anyOf": [{"type": "string", "minLength": 1}, N]},
    ),
    ("z.intersection(z.string(), z.any())", {"allOf": [S, {}]}),
    ("z.string().nullable()", {"type": ["string", "null"]}),
    ("z.string().min(1).nullable()", {"type": ["string", "null"], "minLength": 1}),
    (
        "z.array(z.string()).nullable()",
        {"anyOf": [{"type": "array", "items": S}, NULL]},
    ),
    (
        "z.enum(['a', 'b']).nullable()",
        {"anyOf": [{"type": "string", "enum": ["a", "b"]}, NULL]},
    ),
    ("z.string().nullable().unwrap()", S),
    ("z.any().nullable()", {}),
    ("z.string().optional()", {"anyOf": [{"not": {}}, S]}),
    ("z.string().default('x')", {"type": "string", "default": "x"}),
    ("z.string().default(() => 'x')", {"type": "string", "default": "x"}),
    ("z.string().default('x').removeDefault()", S),
    ("z.any().default({ a: [1, null, true] })", {"default": {"a": [1, None, True]}}),
    ("z.string().describe('d')", {"type": "string", "description": "d"}),
    ("z.string({ description: 'd' })", {"type": "string", "description": "d"}),
    ("z.string().meta({ title: 't', id: 'i' })", {"type": "string", "title": "t"}),
    ("z.string().readonly().brand('B')", S),
    ("z.array(z.string()).element", S),
    ("z.strictObject({})", stripping({}) | {"x-gambit-unknownKeys": "refuse"}),
    (
        "z.looseObject({})",
        {"type": "object", "properties": {}, "additionalProperties": True},
    ),
]

STRINGS: list[tuple[str, JSONValue]] = [
    ("min(1).max(5)", {"minLength": 1, "maxLength": 5}),
    ("min(1).min(3).min(2)", {"minLength": 3}),
    ("length(4)", {"minLength": 4, "maxLength": 4}),
    ("nonempty()", {"minLength": 1}),
    ("min(1, 'too short')", {"minLength": 1}),
    ("min(1, { message: 'too short' })", {"minLength": 1}),
    ("max(Infinity)", {}),
    ("email()", {"format": "email"}),
    ("url()", {"format": "uri"}),
    ("uuid()", {"format": "uuid"}),
    ("datetime()", {"format": "date-time"}),
    ("datetime({ offset: true })", {"format": "date-time"}),
    ("date()", {"format": "date"}),
    ("ip()", {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
    ("ip({ version: 'v4' })", {"format": "ipv4"}),
    ("regex(/^a\\/b$/)", {"pattern": "^a/b$"}),
    ("regex(/a/i)", {"pattern": "(?i:a)"}),
    ("regex(new RegExp('a+'))", {"pattern": "a+"}),
    ("regex(/a/).regex(/b/)", {"pattern": "a", "allOf": [{"pattern": "b"}]}),
    ("startsWith('a.')", {"pattern": "^a\\."}),
    ("endsWith('(b)')", {"pattern": "\\(b\\)$"}),
    ("includes('c')", {"pattern": "c"}),
    ("trim().toLowerCase().toUpperCase()", {}),
]

NUMBERS: list[tuple[str, JSONValue]] = [
    ("min(-1).max(2.5)", {"type": "number", "minimum": -1, "maximum": 2.5}),
    ("gte(1).lte(2)", {"type": "number", "minimum": 1, "maximum": 2}),
    ("gt(1).lt(2)", {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
    ("int()", {"type": "integer"}),
    ("int().nonnegative()", {"type": "integer", "minimum": 0}),
    ("positive()", {"type": "number", "exclusiveMinimum": 0}),
    ("negative()", {"type": "number", "exclusiveMaximum": 0}),
    ("nonpositive()", {"type": "number", "maximum": 0}),
    ("multipleOf(0.5)", {"type": "number", "multipleOf": 0.5}),
    (
        "multipleOf(2).multipleOf(3)",
        {"type": "number", "multipleOf": 2, "allOf": [{"multipleOf": 3}]},
    ),
    ("finite()", {"type": "number"}),
    ("safe()", {"type": "number", "minimum": -SAFE, "maximum": SAFE}),
    ("max(60 * 60)", {"type": "number", "maximum": 3600}),
    ("max(1_000)", {"type": "number", "maximum": 1000}),
    ("max(0x10)", {"type": "number", "maximum": 16}),
]


@pytest.mark.spec("DK-16")
@pytest.mark.parametrize(("expression", "expected"), PLAIN)
def test_each_kind_of_schema_has_its_json_schema(
    expression: str, expected: JSONValue
) -> None:
    """A Zod expression is read as the JSON Schema that means the same."""
    assert schema_of(expression) == expected


@pytest.mark.parametrize(("chain", "expected"), STRINGS)
def test_string_checks_become_keywords(chain: str, expected: JSONValue) -> None:
    """Every check of a string is kept."""
    assert schema_of(f"z.string().{chain}") == {"type": "string"} | expected


@pytest.mark.parametrize(("chain", "expected"), NUMBERS)
def test_number_checks_become_keywords(chain: str, expected: JSONValue) -> None:
    """Every check of a number is kept."""
    assert schema_of(f"z.number().{chain}") == expected


FORMATS = [
    ("z.string().time()", "10:20:30", "10:20:30Z"),
    ("z.string().datetime({ local: true })", "2024-01-02T03:04:05", "2024-01-02"),
    ("z.string().cuid()", "cjld2cjxh0000qzrmn831i7rn", "x"),
    ("z.string().cuid2()", "tz4a98xxat96iws9", "A-B"),
    ("z.string().ulid()", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3"),
    ("z.string().nanoid()", "V1StGXR8_Z5jdHi6B-myT", "V1"),
    ("z.string().emoji()", "😀", "a"),
    ("z.string().base64()", "aGk=", "a"),
    ("z.string().ip()", "::1", "1.2.3"),
    ("z.string().regex(/^ab$/i)", "AB", "ABC"),
    ("z.email()", "a@example.org", "a"),
    ("z.uuid()", "c0a80101-0000-4000-8000-000000000000", "c0a8"),
    ("z.url()", "https://example.org/", "example"),
    ("z.ipv4()", "1.2.3.4", "::1"),
    ("z.iso.date()", "2024-01-02", "2024"),
    ("z.iso.datetime()", "2024-01-02T03:04:05Z", "2024-01-02"),
]


@pytest.mark.parametrize(("expression", "good", "bad"), FORMATS)
def test_formats_take_what_zod_takes(expression: str, good: str, bad: str) -> None:
    """A validator by our schema accepts a good value and refuses a bad one."""
    schema = schema_of(expression)
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


AB = "z.object({ a: z.string(), b: z.number() })"
OBJECTS: list[tuple[str, JSONValue]] = [
    (AB, stripping({"a": S, "b": N})),
    (
        f"{AB}.extend({{ b: z.null(), c: z.string() }})",
        stripping({"a": S, "b": NULL, "c": S}),
    ),
    (
        f"{AB}.merge(z.object({{ c: z.null() }}))",
        stripping({"a": S, "b": N, "c": NULL}),
    ),
    (f"{AB}.pick({{ a: true }})", stripping({"a": S})),
    (f"{AB}.omit({{ a: true }})", stripping({"b": N})),
    (f"{AB}.partial()", stripping({"a": S, "b": N}, [])),
    (f"{AB}.partial({{ a: true }})", stripping({"a": S, "b": N}, ["b"])),
    (f"{AB}.partial().required()", stripping({"a": S, "b": N})),
    (f"{AB}.partial().required({{ a: true }})", stripping({"a": S, "b": N}, ["a"])),
    (
        f"{AB}.strict()",
        stripping({"a": S, "b": N}) | {"x-gambit-unknownKeys": "refuse"},
    ),
    (f"{AB}.strict().strip()", stripping({"a": S, "b": N})),
    (f"{AB}.keyof()", {"type": "string", "enum": ["a", "b"]}),
    (f"{AB}.shape.b", N),
    (
        f"z.object({{ ...{AB}.shape, c: z.null() }})",
        stripping({"a": S, "b": N, "c": NULL}),
    ),
    (
        f"z.object({{ o: z.object({{ a: z.array({AB}) }}) }}).deepPartial()",
        stripping(
            {
                "o": stripping(
                    {"a": {"type": "array", "items": stripping({"a": S, "b": N}, [])}},
                    [],
                )
            },
            [],
        ),
    ),
    (
        "z.object({ a: z.string() }).passthrough()",
        {
            "type": "object",
            "properties": {"a": S},
            "required": ["a"],
            "additionalProperties": True,
        },
    ),
    (
        "z.object({}).catchall(z.number())",
        {"type": "object", "properties": {}, "additionalProperties": N},
    ),
    (
        """z.discriminatedUnion("k", [
            z.object({ k: z.literal(1) }), z.object({ k: z.literal(2) }),
        ])""",
        {
            "anyOf": [
                stripping({"k": {"type": "number", "const": 1}}),
                stripping({"k": {"type": "number", "const": 2}}),
            ]
        },
    ),
    (
        """z.object({
            a: z.string().optional(), b: z.string().default("x"),
            c: z.string().nullish(), d: z.any(),
            e: z.union([z.string(), z.undefined()]),
        })""",
        stripping(
            {
                "a": S,
                "b": {"type": "string", "default": "x"},
                "c": {"type": ["string", "null"]},
                "d": {},
                "e": S,
            },
            [],
        ),
    ),
    (f"{AB}.nullable()", {"anyOf": [stripping({"a": S, "b": N}), NULL]}),
]


@pytest.mark.spec("DK-16")
@pytest.mark.parametrize(("expression", "expected"), OBJECTS)
def test_objects_and_their_methods(expression: str, expected: JSONValue) -> None:
    """Objects, and objects made from objects, have the keys Zod gives them."""
    assert schema_of(expression) == expected


@pytest.mark.parametrize(
    "other",
    ["z.object({ b: z.string() })", "z.union([z.object({ b: z.string() }), z.null()])"],
)
def test_both_sides_of_an_intersection_see_each_others_keys(other: str) -> None:
    """Each side's keys are accepted, and a key neither names is unknown."""
    schema = schema_of(f"z.object({{ a: z.string() }}).and({other})")
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"a": "", "b": ""})
    assert not validator.is_valid({"a": ""})
    assert not validator.is_valid({"a": "", "b": "", "c": ""})
    assert schema["x-gambit-unknownKeys"] == "strip"


RECURSIVE = [
    "const Node: z.ZodType<N> = z.object({ next: z.array(z.lazy(() => Node)) });",
    "const Node = z.object({ get next() { return z.array(Node); } });",
    "const Node = z.object({ next: z.lazy((): Any => Node.array()) });",
]


@pytest.mark.parametrize("source", RECURSIVE)
def test_recursive_schemas_use_definitions(source: str) -> None:
    """A schema that contains itself is finite, and checks at every depth."""
    schema = schema_of("Node", before=source)
    assert list(schema["$defs"]) in (["Node"], ["next"])
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"next": [{"next": [{"next": []}]}]})
    assert not validator.is_valid({"next": [{"next": [{"next": 1}]}]})


WARNINGS = [
    ("z.string().refine((v) => v.length > 1)", "GS020", ".refine()", S),
    ("z.string().superRefine((v, c) => {})", "GS020", ".superRefine()", S),
    ("z.string().transform((v) => Number(v))", "GS020", ".transform()", S),
    ("z.string().pipe(z.coerce.number())", "GS020", ".pipe()", S),
    ("z.preprocess((v) => v, z.string())", "GS020", "z.preprocess()", S),
    ("z.date()", "GS022", "date-time", {"type": "string", "format": "date-time"}),
    ("z.coerce.number().min(1)", "GS025", "z.coerce.number()", N | {"minimum": 1}),
    ("z.string().catch('x')", "GS024", ".catch()", S | {"default": "x"}),
    ("z.string().regex(/a/g)", "GS023", "'g'", S | {"pattern": "a"}),
    ("z.string().cidr()", "GS027", ".cidr()", S),
    (
        "z.object({ d: z.string().default(new Date().toISOString().slice(0, 10)) })",
        "GS021",
        "new Date()",
        stripping({"d": S}, []),
    ),
]


@pytest.mark.parametrize(("expression", "code", "named", "expected"), WARNINGS)
def test_what_cannot_be_kept_is_said(
    expression: str, code: str, named: str, expected: JSONValue
) -> None:
    """What JSON Schema cannot say is left out with a warning that names it."""
    module = read(f"{IMPORT}export default {expression}")
    assert module.schema == expected
    assert codes(module) == [code]
    assert module.diagnostics[0].severity == "warning"
    assert named in module.diagnostics[0].message
