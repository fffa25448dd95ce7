"""What the reader says about modules it cannot read, and where it points."""

import ast
from pathlib import Path

import msgspec
import pytest

from gambit_actors.schema import zod
from gambit_actors.schema.diagnostics import CODES
from tests.schema.zod.reading import FILE, IMPORT, codes, read

BAD: list[tuple[str, str, int, int, str]] = [
    ("export default z.object({", "GS001", 2, 1, "TypeScript"),
    ("export const X = z.string();", "GS002", 1, 1, "default export"),
    ("const a = 1;\nexport default a;", "GS003", 3, 1, "default export"),
    ("export default await f();", "GS004", 2, 16, "await expression"),
    ("let a = z.string();\nexport default a;", "GS004", 2, 1, "let a"),
    ("export default class {}", "GS004", 2, 16, "class"),
    ("a.b = 1;\nexport default z.any();", "GS004", 2, 1, "assignment"),
    ("export default z.strnig();", "GS005", 2, 18, "z.strnig()"),
    ("export default z.templateLiteral([]);", "GS005", 2, 18, "z.templateLiteral"),
    ("export default z.string().foo();", "GS006", 2, 27, ".foo()"),
    ("export default z.string().optional().min(1);", "GS006", 2, 38, "before"),
    ("export default z.string().shape;", "GS006", 2, 16, ".shape"),
    ("export default foo;", "GS007", 2, 16, "'foo'"),
    ("/* 😀 */ export default foo;", "GS007", 2, 24, "'foo'"),
    ("export default z.string().min('1');", "GS008", 2, 31, "number"),
    ("export default z.string().min(-1);", "GS008", 2, 31, "whole"),
    ("export default z.object({ a: 1 });", "GS008", 2, 27, "'a'"),
    ("export default z.object({}).pick({ a: true });", "GS008", 2, 34, "'a'"),
    ("export default z.any().default(Infinity);", "GS008", 2, 32, "JSON"),
    ("import x from 'lodash';\nexport default x;", "GS009", 2, 15, "lodash"),
    ("import x from './no.ts';\nexport default x;", "GS009", 2, 15, "deck/no.ts"),
    ("import { y } from './x.ts';\nexport default y;", "GS010", 2, 10, "'y'"),
    ("const A = z.lazy(() => A);\nexport default A;", "GS014", 2, 13, "'A'"),
    (
        "const A = z.union([z.null(), z.lazy(() => A)]);\nexport default A;",
        "GS014",
        2,
        32,
        "'A'",
    ),
    ("export default z.map(z.string(), z.any());", "GS015", 2, 18, "maps"),
]


@pytest.mark.spec("DK-16")
@pytest.mark.parametrize(("text", "code", "line", "column", "named"), BAD)
def test_a_mistake_is_named_where_it_stands(
    text: str, code: str, line: int, column: int, named: str
) -> None:
    """What cannot be read is an error with its line, column and name."""
    module = read(IMPORT + text, {"x.ts": "export const z = 1;"})
    assert module.schema is None
    assert codes(module) == [code]
    (finding,) = module.diagnostics
    assert (finding.severity, finding.file) == ("error", FILE)
    assert (finding.line, finding.column) == (line, column)
    assert named in finding.message


def test_all_mistakes_are_told_at_once() -> None:
    """One bad property does not hide the next."""
    module = read(
        IMPORT
        + "export default z.object({\n"
        + "  a: z.map(),\n  b: z.string(),\n  c: z.array(nope),\n"
        + "  d: z.union([z.foo(), z.string().bar()]),\n  e: 5,\n});"
    )
    assert [(d.line, d.code) for d in module.diagnostics] == [
        (3, "GS015"),
        (5, "GS007"),
        (6, "GS005"),
        (6, "GS006"),
        (7, "GS008"),
    ]


def test_a_mistake_in_an_imported_file_is_told_there() -> None:
    """The finding names the file that has to change."""
    module = read("export { default } from './x.ts';", {"x.ts": "\nexport default y;"})
    (finding,) = module.diagnostics
    assert (finding.file, finding.line, finding.column) == ("deck/x.ts", 2, 16)


def test_a_statement_that_is_not_run_is_a_warning() -> None:
    """Code next to the schema does not make it unusable."""
    module = read(IMPORT + "console.log('x');\nexport default z.any();")
    assert module.schema == {}
    assert codes(module) == ["GS026"]


def test_every_code_is_listed_and_every_listed_code_is_used() -> None:
    """The table of codes and the code agree."""
    folder = Path(str(zod.__file__)).parent
    used = {
        node.value
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("GS")
    }
    assert used <= CODES.keys()
    assert {code for code in CODES if code < "GS030"} == used
    assert all(meaning.endswith(".") for meaning in CODES.values())


def test_what_was_read_cannot_be_changed_by_accident() -> None:
    """Modules and findings are frozen, and findings can be kept in sets."""
    module = read("export default x;")
    assert len({*module.diagnostics}) == 1
    with pytest.raises(AttributeError):
        module.schema = {}  # type: ignore[misc]
    assert msgspec.json.decode(msgspec.json.encode(module))["schema"] is None
