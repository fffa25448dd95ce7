"""Imports, exports, constants and helper functions of Zod modules."""

import pytest

from gambit_actors.openresponses.base import JSONValue
from tests.schema.zod.reading import IMPORT, codes, read, schema_of, stripping

S = {"type": "string"}
N = {"type": "number"}

IMPORTS = [
    'import { z } from "zod";',
    'import { z } from "npm:zod";',
    'import { z } from "npm:zod@3.23.8";',
    'import { z } from "zod/v4";',
    'import { z } from "jsr:@zod/zod@4";',
    'import { z } from "https://deno.land/x/zod@v3.22.4/mod.ts";',
    'import * as z from "zod";',
    'import z from "zod";',
    'import { z as z, type ZodType } from "zod";',
    'import { string } from "zod"; const z = { string };',
    'import { z } from "./deps.ts";',
    'import { z } from "./star.ts";',
]


@pytest.mark.parametrize("line", IMPORTS)
def test_zod_is_known_by_all_its_names(line: str) -> None:
    """However zod is imported, its constructors are found."""
    files = {
        "deps.ts": 'export { z } from "npm:zod";',
        "star.ts": 'export * from "npm:zod";',
    }
    module = read(f"{line}\nexport default z.string();", files)
    assert module.schema == S
    assert module.diagnostics == ()


EXPORTS = [
    "export default z.string();",
    "const X = z.string(); export default X;",
    "const X = z.string(); export { X as default };",
    "const X = z.string(); export { X as default, X };",
    "export const X: z.ZodType<string> = z.string(); export default X;",
    "export default (z.string() as z.ZodType<string>);",
    "export default z.string() satisfies z.ZodTypeAny;",
    'export { default } from "./other.ts";',
    'export { named as default } from "./other.ts";',
    'import other from "./other.ts"; export default other;',
    'import { named } from "./other.ts"; export default named;',
    'import { named as n } from "./other"; export default n;',
    'import { named } from "./other.js"; export default named;',
    'import * as all from "./other.ts"; export default all.named;',
    'import { named } from "./barrel.ts"; export default named;',
    'import { ns } from "./barrel.ts"; export default ns.named;',
]


@pytest.mark.spec("DK-16")
@pytest.mark.parametrize("text", EXPORTS)
def test_the_default_export_is_found(text: str) -> None:
    """Every way to export a schema by default leads to it."""
    files = {
        "other.ts": f"{IMPORT}export const named = z.string(); export default named;",
        "barrel.ts": 'export * from "./other.ts"; export * as ns from "./other.ts";',
    }
    module = read(IMPORT + text, files)
    assert module.schema == S
    assert module.diagnostics == ()


def test_named_exports_are_read_too() -> None:
    """Other exports that are schemas are given; those that are not do no harm."""
    module = read(
        IMPORT
        + "export const A = z.string(); export const B = new Map();\n"
        + "export const C = z.object({ b: B }); export function f(x) { return g(x); }\n"
        + "export type T = z.infer<typeof A>; export default z.number();"
    )
    assert module.schema == N
    assert module.exports == {"A": S}
    assert module.diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        'import { C } from "./other.ts"; export default C;',
        'import * as all from "./other.ts"; export default z.array(all.C);',
        'import { C } from "./barrel.ts"; export default z.object({ c: C });',
    ],
)
def test_importing_what_cannot_be_read_is_a_finding(text: str) -> None:
    """A named export that is silently left out is told of where it is needed."""
    other = IMPORT + "export const C = z.object({ b: new Map() });"
    assert read(other + "export default z.string();").diagnostics == ()
    files = {"other.ts": other, "barrel.ts": 'export { C } from "./other.ts";'}
    module = read(IMPORT + text, files)
    assert module.schema is None
    (finding,) = module.diagnostics
    assert (finding.code, finding.file) == ("GS004", "deck/other.ts")


def test_type_only_code_and_comments_are_skipped() -> None:
    """Types, interfaces, declarations and comments anywhere make no difference."""
    module = read(
        "#!/usr/bin/env deno\n// first\n"
        + IMPORT
        + 'import type { Foo } from "./missing.ts"; export type { Foo };\n'
        + "interface A { a: string } export interface B {} declare const v: string;\n"
        + "type C = z.infer<typeof X>; export type D = C;\n"
        + "const X = z /* here */ . object(/* and */ { // here\n"
        + "  a: /* too */ z.string(/* none */), /* last */ });\n"
        + "export default X; // end"
    )
    assert module.schema == stripping({"a": S})
    assert module.diagnostics == ()


VALUES: list[tuple[str, str]] = [
    ("", "'a\\n\\u{1F600}\\x41\\uD83D\\uDE00\\q'"),
    ("const c = 'a\\n';", "c + `😀A` + '😀' + 'q'"),
    ("const c = { d: { e: 'a\\n😀A' } } as const;", "`${c.d.e}😀q`"),
    ("const c = ['a', '\\n'] as const;", "c[0] + c[1] + '😀A😀q'"),
    ("const c = ['a\\n', 'A', 'q'];", "c.join('😀')"),
    ("const { c, x: d = 1 } = { c: 'a\\n😀A😀q' };", "c"),
    ("const c = undefined;", "c ?? null ?? 'a\\n😀A😀q'"),
    ("const c = {};", "c?.d?.e ?? (true && 'a\\n😀A😀q')"),
    ("enum E { A = 'a\\n😀A😀q' }", "E.A"),
    ("const f = (a, { b = 'q' } = {}, ...r) => a + b;", "f('a\\n😀A😀')"),
    ("function f(x) { const y = x.z; return y; }", "f({ z: 'a\\n😀A😀q' })"),
    ("const f = x => x ? 'no' : 'a\\n😀A😀q';", "f(!1)"),
]


@pytest.mark.parametrize(("before", "expression"), VALUES)
def test_constants_are_worked_out(before: str, expression: str) -> None:
    """Literals, templates, operators, lookups and helpers give the same text."""
    schema = schema_of(f"z.string().describe({expression})", before=before)
    assert schema["description"] == "a\n😀A😀q"


SPREADS: list[tuple[str, str, JSONValue]] = [
    (
        "const V = ['a', 'b'] as const;",
        "z.enum([...V, 'c'])",
        {"type": "string", "enum": ["a", "b", "c"]},
    ),
    ("const O = { A: 'a', B: 'b' };", "z.enum(Object.values(O))", ["a", "b"]),
    ("const O = { A: 'a', B: 'b' };", "z.enum(Object.keys(O))", ["A", "B"]),
    ("const O = [{ id: 'a' }, { id: 'b' }];", "z.enum(O.map((o) => o.id))", ["a", "b"]),
    ("enum E { A = 'a', B = 'b' }", "z.nativeEnum(E)", ["a", "b"]),
    ("const E = z.enum(['a', 'b']);", "z.enum(E.options)", ["a", "b"]),
    ("const s = { a: z.string() };", "z.object({ ...s, b: z.number() })", None),
    ("const b = z.number();", "z.object({ a: z.string(), b })", None),
    ("const k = 'a';", "z.object({ [k]: z.string(), 'b': z.number() })", None),
]


@pytest.mark.parametrize(("before", "expression", "expected"), SPREADS)
def test_collections_are_worked_out(
    before: str, expression: str, expected: JSONValue
) -> None:
    """Spreads, shorthands and lists made from constants are followed."""
    if expected is None:
        expected = stripping({"a": S, "b": N})
    elif isinstance(expected, list):
        expected = {"type": "string", "enum": expected}
    assert schema_of(expression, before=before) == expected


def test_a_helper_of_another_file_builds_the_schema() -> None:
    """A function with defaults, in a sibling file, is read for each call."""
    helper = (
        IMPORT
        + "type D = { name?: string; city?: string };\n"
        + "export function make(d: D = {}): z.ZodTypeAny {\n"
        + "  return z.object({\n"
        + '    name: z.string().default(d.name ?? "nobody"),\n'
        + '    city: z.string().default(d.city ?? "nowhere"),\n'
        + "  });\n}\n"
    )
    text = 'import { make } from "./helper.ts"; export default make({ name: "Ada" });'
    module = read(text, {"helper.ts": helper})
    assert module.schema == stripping(
        {"name": S | {"default": "Ada"}, "city": S | {"default": "nowhere"}}, []
    )
    assert module.diagnostics == ()


def test_files_that_import_each_other_are_fine_if_their_schemas_do_not() -> None:
    """A circle of files is no circle of definitions."""
    text = (
        IMPORT
        + 'import { B } from "./b.ts"; export const A = z.string(); export default B;'
    )
    other = IMPORT + 'import { A } from "./schema.zod.ts"; export const B = z.array(A);'
    module = read(text, {"b.ts": other})
    assert module.schema == {"type": "array", "items": S}


CIRCLES = [
    'export { default } from "./b.ts";',
    'import x from "./b.ts"; export default x;',
    "const a = b; const b = a; export default a;",
    IMPORT + "const a = z.object({ a }); export default a;",
]


@pytest.mark.parametrize("text", CIRCLES)
def test_a_circle_is_reported_and_ends(text: str) -> None:
    """A definition or import that needs itself is one clear finding."""
    module = read(text, {"b.ts": 'export { default } from "./schema.zod.ts";'})
    assert module.schema is None
    assert codes(module) == ["GS011"]
