"""Files that go wrong: good and bad texts, and seeded ways to spoil them.

A `Mutator` with the same seed gives the same text, on every machine. It works on
characters, on tokens and on bytes; bytes that are not UTF-8 in the end come out as
lone surrogates, the way a reader of files hands them on.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["markdown", "zod", "json"]

KINDS: tuple[Kind, ...] = ("markdown", "zod", "json")

_ROOT = Path(__file__).resolve().parents[2]
_LARGEST_SEED = 20_000
# A text of TypeScript that is all open braces takes tree-sitter quadratic time.
_LARGEST: Mapping[Kind, int] = {"markdown": 200_000, "zod": 100_000, "json": 200_000}
_TOKEN = re.compile(r"\w+|[ \t]+|\r?\n|.", re.DOTALL)
_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r'"[^"\n]*"|(?<=[=:] )[\w.-]+')
_LENGTHS = (1, 2, 5, 20, 100)
_REPEATS = (2, 3, 10, 100, 1000, 5000)

_ODD_CHARACTERS = (
    *("\0", "\ufeff", "\r", "\r\n", "\n", "\t", "\v", "\f", "\x1b[31m", "\x7f", "\x85"),
    *("\u2028", "\u2029", "\u200b", "\u202e", "\u0301", "\xa0", "\xad", "\ufffd"),
    *("\ud800", "\udc80", "\udcff", "\udfff", "\U0010ffff", "\ufffe", "😀", "é"),
    *("👩🏽\u200d🔧", "ﬁ", "İ", "ß", "٣", "０", "日本語", "z̶̡͝a"),
)
_HUGE_NUMBERS = (
    *("9" * 30, "9" * 400, "9" * 5000, "1e999", "-1e999", "1e-999", "-0", "-0.0"),
    *("0x" + "f" * 300, "1_0", "9007199254740993", "18446744073709551616", "NaN"),
    *("inf", "-nan", "Infinity", "0.1e+1", "00", "1e5", "4294967296", "-1", "9e18"),
)

_MARKDOWN_TOKENS = (
    "+++|+++\n|\n+++\n|---\n|+++ toml\n|# |=|.|,|'|\"|\"\"\"|'''|[|]|[[|]]|{|}|\\|"
    '\\u0000|\\"|\\uD800|true|false|1979-05-27T07:32:00Z|07:32:00|"a\\nb"|'
    '"""a\nb"""|label|startMode|contextSchema|responseSchema|respond|allowEnd|'
    "modelParams|additionalParams|model|temperature|top_p|reasoning|guardrails|"
    "maxDepth|maxPasses|timeoutMs|permissions|handlers|onBusy|onIdle|onError|"
    "onInterval|intervalMs|delayMs|repeatMs|actions|tools|scenarios|graders|"
    "actionDecks|testDecks|id|graderDecks|inputSchema|outputSchema|contextFragment|"
    "maxTurns|name|path|execute|description|run|read|mcpServers|onTool|"
    "[[actions]]\n|[permissions]\n|[modelParams]\n|[[a.b]]\n|[a.'b']\n|"
    "\n[[actionDecks]]\nname = 'x'\n|\n[handlers.onInterval]\npath = './x.md'\n|"
    'path = "./PROMPT.md"\n|execute = "./lookup.py"\n|a.b.c = 1\n|{a = 1}|'
    'contextSchema = "gambit://schemas/graders/contexts/turn.ts"\n|run = {}\n|'
    '"gambit://decks/openai/codex-sdk"|"gambit://schemas/x.zod.ts"|../|./|'
    "![x](./PROMPT.md)|![x](rules.md)|![x](gambit://init)|![x](a.py)|"
    "![x](gambit://cards/respond.card.md)|![x](<a b.md>)|![x](%00.md)|"
    "![](gambit://snippets/respond.md)|![x](|](|`|```|~~~|<!--|-->|![a](b.md 'c')|"
    "![x](gambit://snippets/nope.md)|gambit://|\\!["
)
_ZOD_TOKENS = (
    "z|.|(|)|{|}|[|]|,|;|:|=>|=|...|?|`|'|\"|${|//|/*|*/|/a+/gi|/(?=a)/|/(a)\\1/|"
    "\\u{110000}|import { z } from 'npm:zod';|import x from './shared.zod.ts';|"
    "export |import './context.zod.ts';|export * from './context.zod.ts';|default |"
    "export default |const a = |function f(a) { return |return |new Date()|"
    "z.object({|z.string()|z.number()|z.array(|z.union([|z.enum(['a'])|"
    "z.lazy(() => |z.record(|z.discriminatedUnion('a', [|z.literal(|z.any|"
    ".optional()|.default(|.min(|.max(|.regex(|.describe(|.extend(|.strict()|"
    ".passthrough()|.catch(|.transform((x) => x)|.nullable()|.int()|.shape|.pick({|"
    "as const|undefined|null|await |class |enum E { A, B = 'x' }|"
    "type T = z.infer<typeof a>;|a|f(a)|??|?."
)
_JSON_TOKENS = (
    '{|}|[|]|,|:|"|\\|null|true|false|{}|[]|""|"type"|"object"|"string"|"number"|'
    '"integer"|"properties"|"a"|"required"|"items"|"prefixItems"|'
    '"additionalProperties"|"$defs"|"$ref": "#"|"$ref": "#/$defs/a"|'
    '"$ref": "http://x.example/y"|"$id": "x"|"pattern": "(a+)+$"|'
    '"pattern": "(?=a)"|"pattern": "["|"format": "date"|"enum"|"const"|"anyOf"|'
    '"oneOf"|"allOf"|"not"|"default"|"if"|"$dynamicRef": "#a"|"$anchor": "a"|'
    '"minimum"|"multipleOf": 0|"$ref"|"\\ud800"|"a\\u0000b"|"__proto__"|'
    '"unevaluatedProperties"|"contains"|"propertyNames"|'
    '"patternProperties": {"(": {}}|"maxLength"|"$schema"|'
    '"http://json-schema.org/draft-04/schema#"|NaN|// x|\'a\'|"dependentRequired"'
)
TOKENS: Mapping[Kind, Sequence[str]] = {
    "markdown": _MARKDOWN_TOKENS.split("|"),
    "zod": _ZOD_TOKENS.split("|"),
    "json": _JSON_TOKENS.split("|"),
}
"""What is worth putting anywhere in a file of a kind."""

_OLD_NAMES = {
    "actions]]": "actionDecks]]",
    "scenarios]]": "testDecks]]",
    "graders]]": "graderDecks]]",
    "contextSchema": "inputSchema",
    "responseSchema": "outputSchema",
    "onBusy": "onInterval",
    "gambit://snippets/respond.md": "gambit://respond",
    "gambit://snippets/end.md": "gambit://cards/end.card.md",
    ".zod.ts": ".ts",
}

_PAIRS: Mapping[Kind, Sequence[tuple[str, str]]] = {
    "markdown": (
        *(("[", "]"), ("{a=", "}"), ('"', '"'), ("> ", ""), ("a.", ""), ("`", "`")),
        *(("![x](", ")"), ("[[x]]\n", ""), ("<!--", "-->"), ("\n```\n", "\n```\n")),
    ),
    "zod": (
        *(("(", ")"), ("[", "]"), ("{a:", "}"), ("z.array(", ")"), ("!", "")),
        *(("`${", "}`"), ("-", ""), ("(x, y = ", ") => 1")),
        *(("z.object({ a: ", " })"), ("", ".optional()"), ("z.union([", ", z.any()])")),
        *(("(() => ", ")()"), ("z.lazy(() => ", ")"), ("1 + ", ""), ("/*", "*/")),
    ),
    "json": (
        *(("[", "]"), ('{"a":', "}"), ('{"items":', "}"), ('{"not":', "}"), ("", ",1")),
        *(('{"anyOf": [', ', {"type": "null"}]}'), ('{"properties": {"a":', "}}")),
    ),
}
"""What can be put around something, again and again."""

_BAD: Mapping[Kind, Sequence[str]] = {
    "markdown": (
        *("", "+++\n", "+++\n+++", "\ufeff+++\nlabel = 1\n+++\n", "+++\nlabel\n+++\nx"),
        *(
            "---\nlabel: x\n---\nBody",
            "+++ yaml\na: 1\n+++\n",
            "+++\r\na = 1\r\n+++\r\n",
        ),
        "+++\nexecute = 'x.py'\nonTool = 1\nmcpServers = []\ninput = 2\n+++\n",
        "+++\n[[actions]]\n[[actions]]\nname = 'a b'\npath = '.'\nexecute = ''\n+++",
        "+++\n[[tools]]\nname = 'exec'\n[[tools]]\nname = 'gambit_x'\nlabel = 1\n+++",
        "+++\ngraders = [1, {}, {path = 'PROMPT.md'}]\nactions = {}\nhandlers = 3\n+++",
        "+++\n[modelParams]\nmodel = []\ntop_p = 7\nadditionalParams = {a = nan}\n+++",
        "+++\n[permissions]\nread = 1\nrun = {paths = true, x = 1}\nnet = ['']\n+++\nx",
        "+++\n[[testDecks]]\npath = 'x.deck.md'\n[[graderDecks]]\npath = 'y.md'\n+++\n",
        "![a](./rules.md)![b](rules.md)\n```\n![c](d.md)\n``\n`![e](f.md)` ![g](h.ts)",
        "+++\ncontextFragment = './shared.zod.ts'\nhandlers = {}\n+++\n![r](gambit://end)",
    ),
    "zod": (
        *("", "export default", "export default 1;", "export default z.nope();", "z."),
        "import { z } from 'npm:zod'; export const a = z.string();",
        "import { a } from './shared.zod.ts'; export default a;",
        "import a from './context.zod.ts'; export default a;",
        "import { z } from 'zod'; const a = z.object({ a }); export default a.b.c();",
        "import { z } from 'zod'; export default z.lazy(() => z.lazy(() => f(1)));",
        "import { z } from 'zod'; function f(x) { return f(x) } export default f(1);",
        "import { z } from 'zod'; export default z.string().regex(/(?<=a)b/y).date();",
    ),
    "json": (
        *("", "[]", "1", "{", '{"type": 1}', '{"$ref": "#/nowhere"}', '{"$ref": "#"}'),
        *(
            '{"items": [{}]}',
            '{"pattern": "(?<=a)"}',
            '{"$ref": "other.json#/a"}',
            "nul",
        ),
        '{"type": "object", "required": "a", "properties": {"a": {"type": "strin"}}}',
        '{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}',
    ),
}


def kind_of(file: str) -> Kind | None:
    """What kind a file is, by its name."""
    if file.endswith(".md"):
        return "markdown"
    if file.endswith(".ts"):
        return "zod"
    return "json" if file.endswith(".json") else None


@cache
def real_files(folder: str) -> Mapping[str, str]:
    """The files below a folder of the project that a deck may be made of."""
    root = _ROOT / folder
    found = {}
    for file in sorted(root.rglob("*")):
        if kind_of(file.name) and file.stat().st_size <= _LARGEST_SEED:
            text = file.read_bytes().decode("utf-8", "surrogateescape")
            found[file.relative_to(root).as_posix()] = text
    return found


@cache
def seed_texts(kind: Kind) -> tuple[str, ...]:
    """The texts to spoil: the project's own decks and fixtures, and bad ones."""
    files = [*real_files("decks").items(), *real_files("tests/fixtures").items()]
    return (*_BAD[kind], *(text for file, text in files if kind_of(file) == kind))


class Mutator:
    """Spoils texts.

    Args:
        seed: decides everything.
        kind: of the texts.
    """

    def __init__(self, seed: int, kind: Kind) -> None:
        self.chance = random.Random(f"{kind} {seed}")  # noqa: S311  # not a secret
        self._kind: Kind = kind
        self._ways: tuple[Callable[[str], str], ...] = (
            *(self._delete, self._duplicate, self._swap, self._splice, self._truncate),
            *(self._insert_token, self._insert_token, self._replace_token),
            *(self._insert_odd, self._huge_number, self._nest, self._line_ends),
            *(self._flip_bytes, self._cut_bytes, self._repeat, self._shuffle_lines),
            *(self._delete_line, self._duplicate_line, self._retype, self._retype),
            *(self._edge, self._age),
        )

    def mutated(self, text: str) -> str:
        """A text spoilt in one way, or in a few."""
        if self.chance.random() < 0.1:
            text = self.chance.choice(seed_texts(self._kind))
        for _ in range(self.chance.choice((1, 1, 1, 2, 2, 3, 4, 6, 10))):
            text = self.chance.choice(self._ways)(text)[: _LARGEST[self._kind]]
        return text

    def _span(self, text: str) -> tuple[int, int]:
        start = self.chance.randrange(len(text) + 1)
        return start, min(len(text), start + self.chance.choice(_LENGTHS))

    def _delete(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + text[end:]

    def _duplicate(self, text: str) -> str:
        start, end = self._span(text)
        return text[:end] + text[start:end] + text[end:]

    def _swap(self, text: str) -> str:
        (a, b), (c, d) = sorted((self._span(text), self._span(text)))
        b = min(b, c)
        return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]

    def _splice(self, text: str) -> str:
        other = self.chance.choice(seed_texts(self._kind))
        head, tail = self._span(text)[0], self._span(other)[0]
        return text[:head] + other[tail:]

    def _truncate(self, text: str) -> str:
        return text[: self._span(text)[0]]

    def _insert_token(self, text: str) -> str:
        return self._put(text, self.chance.choice(TOKENS[self._kind]))

    def _replace_token(self, text: str) -> str:
        tokens = [match.span() for match in _TOKEN.finditer(text)]
        if not tokens:
            return text
        start, end = self.chance.choice(tokens)
        return text[:start] + self.chance.choice(TOKENS[self._kind]) + text[end:]

    def _insert_odd(self, text: str) -> str:
        return self._put(text, self.chance.choice(_ODD_CHARACTERS))

    def _huge_number(self, text: str) -> str:
        number = self.chance.choice(_HUGE_NUMBERS)
        places = [match.span() for match in _NUMBER.finditer(text)]
        if not places:
            return self._put(text, number)
        start, end = self.chance.choice(places)
        return text[:start] + number + text[end:]

    def _nest(self, text: str) -> str:
        opening, closing = self.chance.choice(_PAIRS[self._kind])
        times = self.chance.choice(_REPEATS)
        tokens = [match.span() for match in _TOKEN.finditer(text)] or [(0, 0)]
        start, end = self.chance.choice(tokens)
        # Now and then left open, which is the other half of what can go wrong.
        closings = closing * times if self.chance.random() < 0.8 else ""
        return text[:start] + opening * times + text[start:end] + closings + text[end:]

    def _line_ends(self, text: str) -> str:
        return text.replace(
            "\n", self.chance.choice(("\r\n", "\r", "\n\n", "\n\r", ""))
        )

    def _flip_bytes(self, text: str) -> str:
        data = bytearray(text.encode("utf-8", "surrogatepass"))
        for _ in range(min(len(data), self.chance.choice((1, 1, 2, 8)))):
            data[self.chance.randrange(len(data))] = self.chance.randrange(256)
        return bytes(data).decode("utf-8", "surrogateescape")

    def _cut_bytes(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        at = self.chance.randrange(len(data) + 1)
        return (data[:at] + data[at + 1 :]).decode("utf-8", "surrogateescape")

    def _repeat(self, text: str) -> str:
        start, end = self._span(text)
        times = self.chance.choice(_REPEATS)
        return text[:start] + text[start:end] * times + text[end:]

    def _shuffle_lines(self, text: str) -> str:
        lines = text.split("\n")
        start = self.chance.randrange(len(lines))
        some = lines[start : start + 6]
        self.chance.shuffle(some)
        return "\n".join([*lines[:start], *some, *lines[start + 6 :]])

    def _delete_line(self, text: str) -> str:
        lines = text.split("\n")
        del lines[self.chance.randrange(len(lines))]
        return "\n".join(lines)

    def _duplicate_line(self, text: str) -> str:
        lines = text.split("\n")
        line = self.chance.choice(lines)
        lines.insert(self.chance.randrange(len(lines) + 1), line)
        return "\n".join(lines)

    def _retype(self, text: str) -> str:
        """Put another value, of the same type or of another, where one is."""
        places = [match.span() for match in _QUOTED.finditer(text)]
        if not places:
            return text
        start, end = self.chance.choice(places)
        others = [text[a:b] for a, b in places]
        odd = self.chance.choice(_ODD_CHARACTERS)
        others += ["1", "true", "[]", "{}", '""', '" "', "[1, 2]", "null", "1.5", "-7"]
        others += [f'"{odd}"', f'{text[start : end - 1]}{odd}"', *_HUGE_NUMBERS]
        return text[:start] + self.chance.choice(others) + text[end:]

    def _edge(self, text: str) -> str:
        """Put something at the very start or end, where readers look first."""
        odd = self.chance.choice(_ODD_CHARACTERS)
        return self.chance.choice((odd + text, text + odd, text.strip(), "\n" + text))

    def _age(self, text: str) -> str:
        """Write some of what has had another name by its old one."""
        for new, old in _OLD_NAMES.items():
            text = text.replace(new, old) if self.chance.random() < 0.5 else text
        return text

    def _put(self, text: str, piece: str) -> str:
        at = self.chance.randrange(len(text) + 1)
        return text[:at] + piece + text[at:]
