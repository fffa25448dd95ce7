"""Keys and values of a TOML document are found where they are written."""

import itertools
import re
import time
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple, TypeAlias

import pytest
import tomli
from hypothesis import example, given
from hypothesis import strategies as st

from gambit_actors.deck.toml_places import Path, Span, TomlPlaces


class Bare(NamedTuple):
    """A value as it is written, without quotes."""

    text: str


Tree: TypeAlias = str | Bare | list["Tree"] | dict[str, "Tree"]
Table: TypeAlias = dict[str, Tree]

SHORT_ESCAPES = {
    "\b": r"\b",
    "\t": r"\t",
    "\n": r"\n",
    "\f": r"\f",
    "\r": r"\r",
    "\x1b": r"\e",
    '"': r"\"",
    "\\": r"\\",
}
GAPS = ["", "", " ", "\n", "\t\n ", " # ]}\"'''\n", "\n# a, b = [ \\\n\n"]
BARE_VALUES = [
    *("0", "-17", "+1_000", "0xBE_EF", "0o17", "0b1", "true", "false"),
    *("1.5", "-0.0", "6.02e+23", "1e06", "inf", "-inf", "nan"),
    *("07:32", "07:32:00.999", "1979-05-27", "1979-05-27T07:32:00Z"),
    *("1979-05-27 07:32", "1979-05-27 07:32:00.5-07:00"),
]

FRAGMENTS = [
    *("a", "b", '"', '""', '"""', "'", "''", "'''", "\\", "\n", "\t", "\r", " ", "#"),
    *("[", "]", "{", "}", "=", ",", ".", "é", "😀", "\x1b", "\x7f"),
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8
)
names = st.sampled_from(["a", "b", "c-d", "1", "true", "", "x y", "é", "a.b"]) | texts
trees: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from(BARE_VALUES).map(Bare) | texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(names, inner, max_size=4)
        | st.lists(st.dictionaries(names, inner, max_size=3), max_size=3)
    ),
    max_leaves=25,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Make a document of any content, each part written in one of its ways."""
    table = draw(st.dictionaries(names, trees, max_size=6))
    random = draw(st.randoms(use_true_random=False))
    text = write_section(table, (), "", random)
    if random.random() < 0.3:
        text = text.rstrip("\n")
    return text.replace("\n", "\r\n") if random.random() < 0.3 else text


def write_section(
    table: Table, path: tuple[str, ...], mark: str, random: Random
) -> str:
    """Write a table with its header, and with what has headers inside it."""
    entries, later = split(table, random)
    body = "".join(write_entry(keys, value, random) + "\n" for keys, value in entries)
    parts = []
    for keys, value in random.sample(later, len(later)):
        elements = value if isinstance(value, list) else [value]
        inner = "[[" if isinstance(value, list) else "["
        parts += [
            write_section(element, path + keys, inner, random)
            for element in elements
            if isinstance(element, dict)
        ]
    rest = "".join(parts)
    if not mark:
        return body + rest
    closing = mark.replace("[", "]")
    pad = random.choice(["", " ", "\t "])
    header = f"{pad}{mark}{pad}{write_key(path, random)}{pad}{closing}{pad}"
    head = f"{header}{random.choice(['', '# [x]'])}\n{body}"
    if mark == "[" and rest and not body and random.random() < 0.5:
        return rest
    if (
        mark == "["
        and all(len(keys) == 1 for keys, _ in later)
        and random.random() < 0.3
    ):
        return rest + head
    return head + rest


Pairs: TypeAlias = list[tuple[tuple[str, ...], Tree]]


def split(table: Table, random: Random) -> tuple[Pairs, Pairs]:
    """Choose what is written below a table's own header, and what under another."""
    entries: Pairs = []
    later: Pairs = []
    for name, value in table.items():
        is_array = isinstance(value, list) and all(isinstance(x, dict) for x in value)
        style = random.choice(["header", "header", "dotted", "inline"])
        if value and (is_array or isinstance(value, dict)) and style == "header":
            later.append(((name,), value))
        elif value and isinstance(value, dict) and style == "dotted":
            here, below = split(value, random)
            entries += [((name, *keys), inner) for keys, inner in here]
            later += [((name, *keys), inner) for keys, inner in below]
        else:
            entries.append(((name,), value))
    return entries, later


def write_entry(keys: tuple[str, ...], value: Tree, random: Random) -> str:
    """Write a key and its value."""
    equals = random.choice([" = ", "=", "\t=  "])
    return write_key(keys, random) + equals + write_value(value, random)


def write_key(keys: tuple[str, ...], random: Random) -> str:
    """Write a dotted key."""
    tokens = []
    for name in keys:
        styles = [f'"{escape(name, random)}"']
        if re.fullmatch(r"[A-Za-z0-9_-]+", name):
            styles += [name, name, name]
        if is_plain(name, "'"):
            styles.append(f"'{name}'")
        tokens.append(random.choice(styles))
    return random.choice([".", ".", " . ", "\t."]).join(tokens)


def write_value(value: Tree, random: Random) -> str:
    """Write a value that needs no header."""
    match value:
        case Bare(text=text):
            return text
        case str():
            return write_string(value, random)
        case list():
            inner = [write_value(element, random) for element in value]
            return write_list(inner, "[]", random)
        case _:
            entries, later = split(value, random)
            inner = [write_entry(keys, item, random) for keys, item in entries + later]
            return write_list(inner, "{}", random)


def write_list(inner: list[str], brackets: str, random: Random) -> str:
    """Write what stands in brackets or braces, over as many lines as it likes."""
    commas = [","] * len(inner)
    if inner and random.random() < 0.5:
        commas[-1] = ""
    parts = [
        f"{random.choice(GAPS)}{text}{random.choice(GAPS)}{comma}"
        for text, comma in zip(inner, commas, strict=True)
    ]
    return f"{brackets[0]}{''.join(parts)}{random.choice(GAPS)}{brackets[1]}"


def write_string(text: str, random: Random) -> str:
    """Write a string in one of the four ways, as far as they can hold it."""
    styles = [f'"{escape(text, random)}"', f'"""{escape_long(text, random)}"""']
    if is_plain(text, "'"):
        styles.append(f"'{text}'")
    if is_plain(text.replace("\n", ""), "'''") and "'''" not in text:
        # The first line break after the quotes does not count.
        start = "\n" if text.startswith("\n") else random.choice(["", "\n"])
        styles.append(f"'''{start}{text}'''")
    return random.choice(styles)


def is_plain(text: str, quote: str) -> bool:
    """Say whether a text can stand in literal quotes on one line."""
    return quote not in text and not re.search(r"[\x00-\x08\n-\x1f\x7f]", text)


def escape(text: str, random: Random) -> str:
    """Write a text for basic quotes; what need not be escaped sometimes is."""
    return "".join(
        escape_one(char, random)
        if char in '"\\' or not is_plain(char, '"') or random.random() < 0.1
        else char
        for char in text
    )


def escape_one(char: str, random: Random) -> str:
    """Write one character as an escape, of those that can express it."""
    code = ord(char)
    styles = [rf"\U{code:08x}"]
    styles += [rf"\u{code:04X}"] if code < 0x10000 else []
    styles += [rf"\x{code:02x}"] if code < 0x100 else []
    styles += [SHORT_ESCAPES[char]] * 3 if char in SHORT_ESCAPES else []
    return random.choice(styles)


def escape_long(text: str, random: Random) -> str:
    """Write a text for three basic quotes, with raw breaks and quotes where it may."""
    out = "\n" if text.startswith("\n") or random.random() < 0.3 else ""
    for char in text:
        if char == "\n" or (char == '"' and not out.endswith('""')):
            out += random.choice([char, escape_one(char, random)])
        else:
            fold = random.random() < 0.1 and char not in " \t"
            out += ("\\\n  \n" if fold else "") + escape(char, random)
    return out + random.choice(["", "", "\\ \n\t"])


def paths_of(value: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """List every key and element inside a parsed value, at any depth."""
    entries: Any = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for step, inner in entries:
        yield (*path, step), inner
        yield from paths_of(inner, (*path, step))


def keys_of(path: Path) -> tuple[str, ...]:
    """Leave the indexes out of a path."""
    return tuple(step for step in path if isinstance(step, str))


def cut(text: str, span: Span | None) -> str:
    """Give what stands in a span that must be known."""
    assert span is not None
    return text[span.start : span.end]


def spine(table: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Give the keys of a document that is one header."""
    found: tuple[str, ...] = ()
    while table:
        if isinstance(table, list):
            (table,) = table
        else:
            ((name, table),) = table.items()
            found += (name,)
    return found


def check_value(text: str, places: TomlPlaces, path: Path, value: object) -> None:
    """Check that the place of a value holds it, or the header that opens it."""
    key, span = places.key(path), places.value(path)
    assert key is not None
    assert span is not None
    written = cut(text, span)
    named = isinstance(path[-1], str)
    is_table = isinstance(value, dict)
    is_array = isinstance(value, list) and named and span.start < key.start
    if written.startswith("[") and (is_table or is_array):
        assert spine(tomli.loads(written)) == keys_of(path)
        assert written.startswith("[[") == (is_array or not named)
    elif not is_table or written.startswith("{"):
        # By their repr, in which "not a number" is like itself and -0.0 unlike 0.0.
        assert repr(tomli.loads(f"x = {written}")["x"]) == repr(value)
        between = text[key.end : span.start]
        assert re.fullmatch(r"[ \t]*=[ \t]*", between) if named else key == span
    else:
        assert span == key


def check_key(text: str, places: TomlPlaces, path: Path) -> None:
    """Check that the place of a key holds it, and is one of its uses."""
    key = places.key(path)
    uses = places.uses(keys_of(path))
    if isinstance(path[-1], str) or key != places.value(path):
        assert list(tomli.loads(f"{cut(text, key)} = 0")) == [keys_of(path)[-1]]
        assert key in uses
    starts = [use.start for use in uses]
    assert starts == sorted(set(starts))


@pytest.mark.slow
@given(documents())
def test_every_key_and_value_is_found(text: str) -> None:
    """Each path that tomli reads leads to the text that it was read from."""
    places = TomlPlaces(text)
    found = list(paths_of(tomli.loads(text)))
    for path, value in found:
        check_value(text, places, path, value)
        check_key(text, places, path)
        assert places.nearest((*path, "no such key", 7)) == places.value(path)
    leaves = [path for path, value in found if not isinstance(value, dict | list)]
    assert len({places.value(path) for path in leaves}) == len(leaves)


DECK = """\
# A deck.
label = "x"  # "label" = 1
modelParams.model = 'm'
modelParams . "temp\\u0065rature" = 0.5

[[actionDecks]]
name = "one"
[actionDecks.permissions]
read = ["a", [ 1979-05-27 07:32:00, 2 ], {
  deep.er = true, # said in TOML 1.1
}]

[other]
[[ 'actionDecks' ]]
permissions = { read = [] }
[actionDecks.x.y]
[actionDecks.x]
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("label",), "label", '"x"'),
        (("modelParams",), "modelParams", "modelParams"),
        (("modelParams", "model"), "model", "'m'"),
        (("modelParams", "temperature"), '"temp\\u0065rature"', "0.5"),
        (("actionDecks",), "actionDecks", "[[actionDecks]]"),
        (("actionDecks", 0), "actionDecks", "[[actionDecks]]"),
        (("actionDecks", 1), "'actionDecks'", "[[ 'actionDecks' ]]"),
        (("actionDecks", 0, "permissions"), "permissions", "[actionDecks.permissions]"),
        (("actionDecks", 0, "permissions", "read", 0), '"a"', '"a"'),
        (
            ("actionDecks", 0, "permissions", "read", 1, 0),
            "1979-05-27 07:32:00",
            "1979-05-27 07:32:00",
        ),
        (("actionDecks", 0, "permissions", "read", 2, "deep"), "deep", "deep"),
        (("actionDecks", 0, "permissions", "read", 2, "deep", "er"), "er", "true"),
        (("actionDecks", 1, "permissions"), "permissions", "{ read = [] }"),
        (("actionDecks", 1, "x"), "x", "[actionDecks.x]"),
        (("actionDecks", 1, "x", "y"), "y", "[actionDecks.x.y]"),
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_what_a_place_is(path: Path, key: str, value: str, line_break: str) -> None:
    """A key is its token; a value is all of it, or the header of its table."""
    text = DECK.replace("\n", line_break)
    places = TomlPlaces(text)
    assert (cut(text, places.key(path)), cut(text, places.value(path))) == (key, value)


def test_a_key_is_where_it_is_first_written() -> None:
    """A table named by its sub-table first has its key there, and its own header."""
    text = "[a.b]\n[c]\n[a]\n[a.d]\n"
    places = TomlPlaces(text)
    assert places.key(("a",)) == Span(1, 2)
    assert places.value(("a",)) == Span(text.index("[a]"), text.index("[a]") + 3)
    assert TomlPlaces("[a.b]").value(("a",)) == Span(1, 2)


def test_elements_may_stand_apart() -> None:
    """Each header of an array opens the next element, whatever stands between."""
    text = "[[a]]\n[[a.b]]\n[c]\n[[a]]\n[[a.b]]\n[[a.b]]\nx = 1\n"
    places = TomlPlaces(text)
    assert cut(text, places.value(("a", 1, "b", 1, "x"))) == "1"
    assert places.value(("a", 1)) == Span(
        text.rindex("[[a]]"), text.rindex("[[a]]") + 5
    )
    assert places.key(("a", 0, "b", 1)) is None
    assert places.key(("a", 2)) is None


@pytest.mark.parametrize(
    ("keys", "written"),
    [
        (("a",), ["a", '"a"', "a", "'a'", "a"]),
        (("a", "b"), ["b", "b", "b"]),
        (("a", "b", "c"), ["c", "c"]),
        (("d",), ["d"]),
        (("d", "b"), ["b", "b"]),
        (("b",), []),
        ((), []),
    ],
)
def test_uses_of_a_key(keys: tuple[str, ...], written: list[str]) -> None:
    """All that writes a key is listed in order: headers, dotted keys, inline keys."""
    text = (
        'd = [{b = 1}, [{b = "b"}]] # d.b\n'
        '[[a]]\n["a".b]\nc = "a"\n'
        "[[a]]\n['a' . b]\nc = 1\n"
        "[[a]]\nb = {a = 2}\n"
    )
    spans = TomlPlaces(text).uses(keys)
    assert [cut(text, span) for span in spans] == written
    assert spans == sorted(spans, key=lambda span: span.start)


def test_uses_in_dotted_keys() -> None:
    """A dotted key uses each of its parts, one level further down."""
    text = "a.x = 1\na.y.a = 2\n[b]\na.a = 3\n"
    places = TomlPlaces(text)
    assert places.uses(("a",)) == [Span(0, 1), Span(8, 9)]
    assert places.uses(("a", "y", "a")) == [Span(12, 13)]
    assert places.uses(("b", "a")) == [
        Span(text.index("a.a = 3"), text.index(".a = 3"))
    ]


def test_the_nearest_place() -> None:
    """What is not written is shown at the innermost thing around it that is."""
    text = "[a]\nb = [1, 2]\n"
    places = TomlPlaces(text)
    assert cut(text, places.nearest(("a", "b", 1))) == "2"
    assert cut(text, places.nearest(("a", "b", 2, "c"))) == "[1, 2]"
    assert cut(text, places.nearest(("a", "c", 0))) == "[a]"
    assert places.nearest(("c",)) == places.nearest(()) == Span(0, 0)


@pytest.mark.parametrize(
    "value",
    [
        '""',
        "''",
        '""""""',
        "''''''",
        r'"\\"',
        r'"a\"] # b"',
        '"""a""""',
        '"""a"""""',
        "'''a''''",
        "'''a'''''",
        '""""a" ""b\\""" c"""',
        '"""\\\n  a = 1\n  [b]\n"""',
        "'''\n\\'''",
        "[ # ]\n[], ['''\n]''',\n], ]",
        "{ a = {\n}, # }\n 'b' . c = 1,\n}",
        "1979-05-27",
        "1979-05-27 07:32:00.5+01:00",
        "-inf",
    ],
)
@pytest.mark.parametrize("pattern", ["x = {}", "x={}# c\ny = 1", "z = 0\nx ={}\n[y]"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_the_end_of_a_value(value: str, pattern: str, line_break: str) -> None:
    """A value ends where its last quote, bracket, brace or character stands."""
    text = pattern.replace("{}", value).replace("\n", line_break)
    assert "x" in tomli.loads(text)
    places = TomlPlaces(text)
    assert cut(text, places.value(("x",))) == value.replace("\n", line_break)
    assert (places.value(("y",)) is None) == ("y" not in tomli.loads(text))


WORDS = [
    *("a", "0", '"a"', "'a'", "''", "a.a", "=", ",", "[", "]", "[[", "]]", "{", "}"),
    *('"', '"""', "'", "'''", "\\", "#", "\n", "\r\n", " ", ".", "1979-05-27 07:32"),
    *(r'"\x61"', r'"\x"', r'"\ud800"', "a = 1\n", "a = [", "a = {", "[a]\n", "\ud800"),
]
STEPS: list[str | int] = ["a", "0", "", 0, 1, 2, -1]
PROBES = [path for size in range(4) for path in itertools.product(STEPS, repeat=size)]


def check_spans(text: str, paths: list[Path]) -> None:
    """Check that whatever is found lies in the text."""
    places = TomlPlaces(text)
    for path in paths:
        spans = [places.nearest(path), places.key(path), places.value(path)]
        for span in spans + places.uses(keys_of(path)):
            assert span is None or 0 <= span.start <= span.end <= len(text)


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join) | st.text())
@example("a = [1\n[[a]]\n[a]\na = 1\n[a.a]\n")
@example("[[a]]\n[a]\na = {a = [")
def test_any_text_is_safe(text: str) -> None:
    """Text that is not TOML raises nothing, and no place is outside it."""
    check_spans(text, PROBES)


@pytest.mark.slow
@given(documents(), st.data())
def test_damaged_text_is_safe(text: str, data: st.DataObject) -> None:
    """A document with some of it replaced raises nothing, and no place is outside."""
    paths = [path for path, _ in paths_of(tomli.loads(text))]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    damaged = text[:start] + data.draw(st.sampled_from(["", *WORDS])) + text[end:]
    check_spans(damaged, paths)


def test_what_comes_before_a_mistake_is_known() -> None:
    """Text that cannot be followed hides what is after it, and nothing before."""
    places = TomlPlaces('a = 1\nb = [2, "x\n]\nc = 3\n')
    assert places.value(("a",)) == Span(4, 5)
    assert places.value(("b", 0)) == Span(11, 12)
    assert places.value(("c",)) is None


def test_nesting_as_deep_as_tomli_reads() -> None:
    """The innermost value that tomli can read is found."""
    depth = 199
    text = f"x = {'[{a = ' * depth}1{'}]' * depth}"
    tomli.loads(text)
    path = ("x", *(0, "a") * depth)
    places = TomlPlaces(text)
    assert cut(text, places.value(path)) == "1"
    assert places.value(path[:2]) == Span(5, len(text) - 1)


LARGE = {
    "keys": "".join(f"key{i} = 1\n" for i in range(100_000)),
    "elements": "x = [" + "1," * 100_000 + "]",
    "tables": "".join(f"[[a]]\n[a.b{i}]\n" for i in range(20_000)),
    "keys below a long header": f"[{'a.' * 900}a]\n"
    + "".join(f"k{i}=1\n" for i in range(20_000)),
    "one long key": "a." * 100_000,
    "open arrays": "x = " + "[" * 200_000,
    "closed arrays": "x = " + "[" * 100_000 + "]" * 100_000,
    "open inline tables": "x = " + "{a=" * 70_000,
    "open headers": "[" * 200_000,
    "equal headers": "[a]\n" * 50_000,
    "comments": "#\n" * 100_000,
    "space": " \r\n" * 70_000 + "!",
    "quotes": "x = " + '"' * 200_000,
    "literal quotes": "x = [" + "'''''''," * 25_000,
    "escapes without end": 'x = """' + '\\"""' * 50_000,
    "escapes in a key without end": '"' + "\\x" * 100_000,
    "escaped keys": r'"\x61".' * 30_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_large_text_takes_time_by_its_size(text: str) -> None:
    """Some 200 KB of anything at all is read in seconds."""
    started = time.process_time()
    TomlPlaces(text).nearest(("x",) + (0,) * 1000)
    assert time.process_time() - started < 10
