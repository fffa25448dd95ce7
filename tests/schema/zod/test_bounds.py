"""Hostile and broken texts: the reader always ends, and always says why."""

import inspect
import json
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gambit_actors.schema.zod import ZodModule
from gambit_actors.schema.zod.constructors import CONSTRUCTORS
from gambit_actors.schema.zod.methods import COMMON_METHODS, OWN_METHODS
from tests.schema.zod.reading import FILE, IMPORT, codes, read
from tests.schema.zod.test_findings import BAD
from tests.schema.zod.test_modules import EXPORTS, SPREADS, VALUES
from tests.schema.zod.test_types import OBJECTS, PLAIN, RECURSIVE


def chain(first: str, following: str, length: int) -> str:
    """A row of constants, each made of the one before, the last one exported."""
    rows = [f"const a0 = {first};"]
    rows += [
        f"const a{i} = {following.replace('_', f'a{i - 1}')};" for i in range(1, length)
    ]
    return f"{' '.join(rows)} export default a{length - 1};"


HOSTILE = {
    "deep array": (
        "export default " + "z.array(" * 5000 + "z.any()" + ")" * 5000,
        "GS012",
    ),
    "long wrap": ("export default z.any()" + ".array()" * 5000, "GS012"),
    "endless helper": (
        "function f(d) { return z.object({ a: f(d) }); } export default f(1);",
        "GS012",
    ),
    "endless helpers": (
        "const f = (d) => z.tuple([f(d), f(d), f(d)]); export default f(1);",
        "GS012",
    ),
    "endless lazy": (
        "const f = (d) => z.array(z.lazy(() => f(d))); export default f(1);",
        "GS013",
    ),
    "laughing schemas": (chain("z.any()", "z.tuple([_, _, _])", 16), "GS013"),
    "laughing text": (chain("'ha'", "_ + _", 28), "GS013"),
    "laughing list": (chain("[1]", "[..._, ..._]", 28), "GS013"),
    "laughing default": (
        chain("[1]", "[_, _, _, _]", 28).replace(
            "default a27", "default z.any().default(a27)"
        ),
        "GS013",
    ),
    "too long": (" " * 1_000_001, "GS013"),
    "huge number": ("export default z.bigint().max(" + "9" * 9999 + "n);", "GS004"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_modules_are_refused(name: str) -> None:
    """Depth, size and endless expansion end in a finding, not in an exception."""
    text, code = HOSTILE[name]
    module = read(IMPORT + text)
    assert module.schema is None
    assert code in codes(module)


def test_endless_imports_are_refused() -> None:
    """A row of files that never ends is left after a while."""
    files = {
        f"f{i}.ts": f"export {{ default }} from './f{i + 1}.ts';" for i in range(99)
    }
    module = read("export { default } from './f0.ts';", files)
    assert module.schema is None
    assert len(codes(module)) == 1


@pytest.mark.slow
def test_wide_schemas_are_fine() -> None:
    """Ten thousand branches are many, but not too many."""
    members = ",".join(f"z.object({{ k: z.literal({i}) }})" for i in range(10_000))
    module = read(f"{IMPORT}export default z.union([{members}]);")
    assert module.diagnostics == ()
    assert module.schema is not None
    assert len(module.schema["anyOf"]) == 10_000


def test_long_chains_and_sums_are_not_deep() -> None:
    """Length is not depth: a long chain of calls or additions is read."""
    text = "+".join(["'a'"] * 500)
    module = read(
        f"{IMPORT}export default z.string().describe({text}){'.min(1)' * 2000};"
    )
    assert module.diagnostics == ()


def test_a_caller_near_its_own_limit_gets_a_finding() -> None:
    """Where the stack has little room left, a deep module is still no exception."""
    text = f"{IMPORT}export default {'z.array(' * 30}z.any(){')' * 30};"

    def descend(frames: int) -> ZodModule:
        return descend(frames - 1) if frames else read(text)

    room = sys.getrecursionlimit() - len(inspect.stack(0))
    assert codes(descend(room - 100)) == ["GS012"]
    assert codes(read(text)) == []


def check(module: ZodModule, texts: dict[str, str]) -> None:
    """What must hold whatever was read."""
    has_errors = any(d.severity == "error" for d in module.diagnostics)
    assert (module.schema is None) == has_errors
    json.dumps(module.schema, allow_nan=False).encode()
    for finding in module.diagnostics:
        lines = texts[finding.file].split("\n")
        assert 1 <= finding.line <= len(lines)
        # Just behind the last character is where something is missing.
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1


SEEDS = [
    *(f"export default {expression};" for expression, _ in [*PLAIN, *OBJECTS]),
    *(row[0] for row in BAD),
    *EXPORTS,
    *RECURSIVE,
    *(f"{b} export default z.string().describe({e});" for b, e in VALUES),
    *(f"{b} export default {e};" for b, e, _ in SPREADS),
]
WORDS = [
    *"(){}[].,;:=>?!+-*/`'\"$\\\n\t 😀0\0\ufeff\ud800",
    *("z", ".object(", ".string()", ".lazy(() => ", "...", "=>", "${", "/*", "//"),
    *("const a = ", "export ", "default ", "import ", " from './x.ts'", "??", "?."),
    *("function f(", "return ", "a", "new Date()", " as const", "{ a: ", ".default("),
    *("z.enum(", ".shape", ".min(", ".array()", ".extend(", "null", "undefined"),
    *("get a() {", "type ", "enum E {", "async ", "class ", "/a/g", "1e999", "[", "]"),
]


@pytest.mark.slow
@given(st.integers(), st.integers(1, 6))
@settings(max_examples=300)
def test_mutated_modules_never_raise(seed: int, edits: int) -> None:
    """A module with pieces cut, doubled and put in is read or refused properly."""
    chance = random.Random(seed)  # noqa: S311
    text = IMPORT + chance.choice(SEEDS)
    for _ in range(edits):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.randrange(12))
        piece = chance.choice(["", chance.choice(WORDS), text[start:end] * 2])
        text = text[:start] + piece + text[end:]
    other = IMPORT + chance.choice(SEEDS)
    check(read(text, {"x.ts": other}), {FILE: text, "deck/x.ts": other})


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=40))
@settings(max_examples=300)
def test_soups_never_raise(words: list[str]) -> None:
    """Any row of tokens is read or refused properly."""
    text = "".join(words)
    check(read(text), {FILE: text})


METHODS = sorted(
    {*COMMON_METHODS, *(name for own in OWN_METHODS.values() for name in own)}
)
NAMES = [*sorted(CONSTRUCTORS), "map", "foo"]
ATOMS = ["1", "-2", "'a'", "/a/", "null", "undefined", "true", "a", "f", "b", "E"]
ATOMS += ["[]", "{}", "new Date()", "a.shape", "E.A", "Infinity", "`${a}`", "z", "'b'"]


def expression(chance: random.Random, room: int) -> str:
    """Some expression that parses, whatever it may mean."""

    def inner() -> str:
        return expression(chance, room - 1)

    if room == 0:
        return chance.choice([*ATOMS, "z.string()", "z.object({ a: z.number() })"])
    several = ", ".join(inner() for _ in range(chance.randrange(3)))
    forms = [
        lambda: f"z.{chance.choice(NAMES)}({several})",
        lambda: f"z.{chance.choice(NAMES)}({several})",
        lambda: f"{inner()}.{chance.choice(METHODS)}({several})",
        lambda: f"{inner()}.{chance.choice(METHODS)}({several})",
        lambda: f"z.object({{ a: {inner()}, [{inner()}]: {inner()}, ...{inner()} }})",
        lambda: f"[{several}, ...{inner()}]" if several else "[1]",
        lambda: f"{{ a: {inner()}, b: true, get c() {{ return {inner()}; }} }}",
        lambda: (
            f"({inner()} {chance.choice(['+', '*', '??', '&&', '===', '%'])} {inner()})"
        ),
        lambda: f"({inner()} ? {inner()} : {inner()})",
        lambda: f"f({several})",
        lambda: f"((x, {{ y = {inner()} }}, ...r) => {inner()})",
        lambda: f"{inner()}?.{chance.choice(['a', 'shape', 'options', 'length'])}",
        lambda: f"Object.{chance.choice(['keys', 'values', 'assign'])}({inner()})",
    ]
    return chance.choice(forms)()


def random_module(chance: random.Random) -> str:
    """A module that parses, full of nonsense."""
    a, b, body, last, member = (
        expression(chance, chance.randrange(4)) for _ in "abcde"
    )
    return (
        f"{IMPORT}const a = {a}; const b = {b};\n"
        f"function f(x, {{ y }}) {{ const w = x; return {body}; }}\n"
        f"enum E {{ A = {member}, B }}\nexport const c = b; export default {last};"
    )


@pytest.mark.slow
@given(st.integers())
@settings(max_examples=500)
def test_nonsense_that_parses_never_raises(seed: int) -> None:
    """Any constructors, methods and operators in any places are read or refused."""
    text = random_module(random.Random(seed))  # noqa: S311
    check(read(text), {FILE: text})
