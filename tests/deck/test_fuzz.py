"""Spoilt decks: any file may hold anything, and loading ends, soon, with words.

Every input is one file of a small tree of decks, spoilt, and the tree is loaded the
way it always is, under either policy; mended, it is loaded again from the same cache.
``make test`` tries a few of the inputs, ``make soak`` more than ten thousand; a
failure names its seed, and `spoilt` makes the same input of it again.
"""

import json
import random
import signal
import time
from functools import cache
from typing import Any, NoReturn, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gambit_actors.deck.findings import LegacyPolicy
from gambit_actors.deck.loader import DeckCache, Loaded
from gambit_actors.deck.model import Deck
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.diagnostics import Diagnostic, Edit
from tests.deck.fuzz_checks import (
    Files,
    TookTooLong,
    check,
    check_finding,
    cpu_limit,
    needed_decks,
    with_edits,
)
from tests.deck.mutations import KINDS, TOKENS, Kind, Mutator, kind_of, real_files
from tests.deck.reading import Texts, deck_text

CPU_SECONDS = 2.0
IS_SOAK = settings.get_current_profile_name() == "soak"
INPUTS_OF_A_KIND = 3_400 if IS_SOAK else 400
POLICIES: tuple[LegacyPolicy, ...] = get_args(LegacyPolicy)

IMPORT = 'import { z } from "npm:zod";\n'
TURN = "gambit://schemas/graders/contexts/turn.zod.ts"
TREE = {
    "PROMPT.md": deck_text(
        """
        label = "Desk"
        contextSchema = "./context.zod.ts"
        modelParams = { model = ["a", "b"], temperature = 0.5, reasoning = {} }
        guardrails = { maxDepth = 3, maxPasses = 10, timeoutMs = 1e5 }
        permissions = { read = ["./data"], run = { commands = ["ls"] } }
        [handlers.onBusy]
        path = "./handlers/busy/PROMPT.md"
        delayMs = 500
        [[actions]]
        name = "decide"
        description = "Decide."
        path = "./actions/decide/PROMPT.md"
        permissions = { read = ["./data/x"] }
        [[actions]]
        name = "look_up"
        description = "Look it up."
        execute = "./lookup.py"
        [[tools]]
        name = "note"
        inputSchema = "./tools/note.json"
        [[scenarios]]
        path = "./scenarios/user/PROMPT.md"
        [[graders]]
        path = "./graders/tone/PROMPT.md"
        """,
        "Help.\n\n![rules](./snippets/rules.md)\n\n![end](gambit://snippets/end.md)\n",
    ),
    "context.zod.ts": IMPORT
    + 'import { order } from "./shared.zod.ts";\n'
    + "export default z.object({ order, note: z.string().max(9).default('none') });\n",
    "shared.zod.ts": IMPORT
    + "const price = z.number().int().min(0);\n"
    + "export const order = z.object({ id: z.string().regex(/^L-\\d+$/), price });\n"
    + "export default z.object({ order: order.optional(), at: z.enum(['a', 'b']) });\n",
    "snippets/rules.md": deck_text(
        "label = 'Rules'\ncontextFragment = '../shared.zod.ts'", "![x](./more.md)"
    ),
    "snippets/more.md": "Never guess. `![not](this.md)` ![a picture](./a.png)\n",
    "tools/note.json": json.dumps(
        {
            "type": "object",
            "properties": {"text": {"type": "string"}, "tags": {"$ref": "#/$defs/t"}},
            "required": ["text"],
            "$defs": {"t": {"type": "array", "items": {"enum": ["a", 1, None]}}},
        },
        indent=2,
    ),
    "actions/decide/PROMPT.md": deck_text(
        "contextSchema = '../../shared.zod.ts'\nresponseSchema = './response.json'",
        "Decide.\n\n![respond](gambit://snippets/respond.md)",
    ),
    "actions/decide/response.json": '{"type": "object", "properties": {"a": {}}}',
    "handlers/busy/PROMPT.md": "Say that it takes a while.\n",
    "scenarios/user/PROMPT.md": deck_text(
        "contextSchema = './context.zod.ts'\n"
        "responseSchema = 'gambit://schemas/scenarios/plain_chat_output.zod.ts'",
        "Ask.\n\n![x](gambit://snippets/scenario-participant.md)",
    ),
    "scenarios/user/context.zod.ts": IMPORT + "export default z.object({}).strict();\n",
    "graders/tone/PROMPT.md": deck_text(
        f"contextSchema = '{TURN}'\nresponseSchema = './response.json'",
        "Grade.\n\n![respond](gambit://snippets/respond.md)",
    ),
    "graders/tone/response.json": json.dumps(
        {
            "type": "object",
            "properties": {
                "score": {"type": "integer", "minimum": -3, "maximum": 3},
                "reason": {"type": "string"},
                "evidence": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["score", "reason"],
        }
    ),
    "lookup.py": "",
}
TREE_ROOT = "PROMPT.md"
REAL_ROOT = "support/PROMPT.md"
REAL_TREE = {**real_files("decks"), "support/actions/order_lookup/lookup.py": ""}
ANYTHING = DescribedModule(context_schema={}, response_schema={"type": "object"})
MODULES = {
    "lookup.py": DescribedModule(
        context_schema="./shared.zod.ts", response_schema={"type": "object"}
    ),
    "support/actions/order_lookup/lookup.py": ANYTHING,
}


class Spoilt(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of decks with one file that may hold anything."""

    files: Files
    root: str = TREE_ROOT
    file: str
    legacy: LegacyPolicy

    @property
    def is_on_trial(self) -> bool:
        """Whether the file is only there to try the root out."""
        return "scenarios/" in self.file or "graders/" in self.file


def spoilt(kind: Kind, seed: int) -> Spoilt:
    """Make the input of a seed."""
    mutator = Mutator(seed, kind)
    chance = mutator.chance
    root = REAL_ROOT if chance.random() < 0.1 else TREE_ROOT
    tree = tree_of(root)
    file = chance.choice([file for file in tree if kind_of(file) == kind])
    text = mutator.mutated(tree[file])
    content = text if chance.random() < 0.99 else OSError("the disk is broken")
    legacy = chance.choice(POLICIES)
    return Spoilt(files={**tree, file: content}, root=root, file=file, legacy=legacy)


def tree_of(root: str) -> dict[str, str]:
    """The tree with this root, before it is spoilt."""
    return REAL_TREE if root == REAL_ROOT else TREE


def try_out(given: Spoilt) -> float:
    """Load a tree and check all that must hold; how many seconds the loading took."""
    kept = DeckCache()
    loaded, taken = load_in_time(given, given.files, kept)
    check(given.files, loaded)
    if given.is_on_trial:
        assert loaded.deck is not None, "a broken trial must not break what it tries"
    changed = with_edits(given.files, loaded.diagnostics)
    if changed is not None:
        again, _ = load_in_time(given, changed, kept)
        check(changed, again)
        check_same(again, load_in_time(given, changed)[0])
    mended, _ = load_in_time(given, tree_of(given.root), kept)
    check_same(mended, unspoilt(given.root, given.legacy))
    return taken


def load_in_time(
    given: Spoilt, files: Files, kept: DeckCache | None = None
) -> tuple[Loaded, float]:
    """Load a state of a tree, and tell how many seconds that took."""
    began = time.process_time()
    try:
        with cpu_limit(CPU_SECONDS):
            loaded = load(files, given.root, given.legacy, kept)
    except TookTooLong:
        pytest.fail(f"it takes more than {CPU_SECONDS:g} seconds")
    taken = time.process_time() - began
    assert taken <= CPU_SECONDS
    return loaded, taken


def load(
    files: Files, root: str, legacy: LegacyPolicy, kept: DeckCache | None = None
) -> Loaded:
    """Load a tree with only that remembered which is in the cache given."""
    reader = Texts(files, modules=MODULES)
    return (kept or DeckCache()).load(reader, root, legacy=legacy)


# Every input is mended to one of four, so that to load them once is enough.
@cache
def unspoilt(root: str, legacy: LegacyPolicy) -> Loaded:
    """What a tree comes to before it is spoilt."""
    return load(tree_of(root), root, legacy)


def check_same(kept: Loaded, fresh: Loaded) -> None:
    """Check that a tree from a cache is what it would be without."""
    assert kept == fresh, "a cache has kept what is not true any more"
    if kept.deck is None or fresh.deck is None:
        return
    decks, others = needed_decks(kept.deck), needed_decks(fresh.deck)
    assert decks == others, "a cache has kept a deck that is another now"
    assert [trials_of(d) for d in decks] == [trials_of(d) for d in others]


def trials_of(deck: Deck) -> list[bool]:
    """Which scenarios and graders of a deck can be used."""
    return [one.link.is_usable for one in (*deck.scenarios, *deck.graders)]


@pytest.mark.parametrize("legacy", POLICIES)
@pytest.mark.parametrize("root", [TREE_ROOT, REAL_ROOT])
def test_unspoilt_trees_are_good(root: str, legacy: LegacyPolicy) -> None:
    """What is spoilt below has no errors before, so the inputs say something."""
    loaded = load(tree_of(root), root, legacy)

    assert [d for d in loaded.diagnostics if d.severity == "error"] == []
    assert loaded.deck is not None


def spin() -> NoReturn:
    """Hang."""
    while True:
        pass


def test_what_hangs_is_stopped() -> None:
    """The limit ends a loop that would not, so a hang is a failure with its input."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("there is no clock that stops anything on this system")

    with pytest.raises(TookTooLong), cpu_limit(0.02):
        spin()


@pytest.mark.parametrize(
    "fault",
    [
        {"code": "GD999"},
        {"severity": "fatal"},
        {"message": ""},
        {"file": "other.md"},
        {"line": 0},
        {"line": 3},
        {"column": 6},
        {"edits": (Edit(start=0, end=99, text=""),)},
        {"edits": (Edit(start=0, end=2, text=""), Edit(start=1, end=3, text=""))},
    ],
)
def test_a_bad_finding_is_noticed(fault: dict[str, Any]) -> None:
    """The checks that all inputs go through can fail."""
    good = Diagnostic(
        code="GD010", severity="error", message="No.", file="x.md", line=1, column=5
    )
    check_finding({"x.md": "text\n"}, good)

    with pytest.raises(AssertionError):
        check_finding({"x.md": "text\n"}, msgspec.structs.replace(good, **fault))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_files_get_findings(
    kind: Kind, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any file of a tree, spoilt in any way: no exception, no hang, only findings."""
    slowest = (0.0, 0)
    for seed in range(INPUTS_OF_A_KIND):
        given = spoilt(kind, seed)
        try:
            slowest = max(slowest, (try_out(given), seed))
        except (Exception, pytest.fail.Exception) as problem:
            shown = f"{given.file} = {given.files[given.file]!r:.5000}"
            msg = f"spoilt({kind!r}, {seed}): {problem!r:.500} with {shown}"
            raise AssertionError(msg) from problem
    if IS_SOAK:
        with capsys.disabled():
            words = f"{INPUTS_OF_A_KIND} spoilt {kind} files, no failure; the slowest"
            print(f"\n{words} took {slowest[0]:.2f} s (seed {slowest[1]})")  # noqa: T201


KEYS = [token for token in TOKENS["markdown"] if token.isidentifier()]
REFERENCES = [*TREE, "./PROMPT.md", "../PROMPT.md", ".", "", "gambit://decks/x", TURN]
WORDS = st.sampled_from([*KEYS, *REFERENCES]) | st.text(max_size=5)
SCALARS = WORDS | st.booleans() | st.integers() | st.floats()
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5
        )
    ),
    max_leaves=20,
)
TABLES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)
BODIES = st.lists(st.sampled_from(TOKENS["markdown"]) | WORDS, max_size=8).map("".join)


def toml_from(value: object) -> str:
    """A value in TOML, all in one line; odd text is left as it is, and so not TOML."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            entries = (f"{toml_from(k)} = {toml_from(v)}" for k, v in value.items())
            return f"{{{', '.join(entries)}}}"
        case list():
            return f"[{', '.join(map(toml_from, value))}]"
        case str():
            return json.dumps(value)
    return str(value)


@pytest.mark.slow
@given(
    st.sampled_from([file for file in TREE if kind_of(file) == "markdown"]),
    TABLES,
    BODIES,
    st.sampled_from(POLICIES),
)
def test_any_frontmatter_gets_findings(
    file: str, table: dict[str, object], body: str, legacy: LegacyPolicy
) -> None:
    """Any known keys with any values, in any deck or snippet of a tree."""
    rows = [f"{key} = {toml_from(value)}" for key, value in table.items()]
    text = deck_text("\n".join(rows), body)

    try_out(Spoilt(files={**TREE, file: text}, file=file, legacy=legacy))


KEYWORDS = [t.strip('"') for t in TOKENS["json"] if t[1:-1].isalpha()] + ["$ref", "$id"]
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.none() | st.sampled_from([*KEYWORDS, "#", "#/$defs/a", "(a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
    ),
    max_leaves=15,
)


@pytest.mark.slow
@given(
    st.sampled_from([file for file in TREE if kind_of(file) == "json"]),
    SCHEMAS,
    st.sampled_from(POLICIES),
)
def test_any_json_gets_findings(
    file: str, schema: object, legacy: LegacyPolicy
) -> None:
    """Any keywords of JSON Schema with any values, wherever a tree has a schema."""
    text = json.dumps(schema)

    try_out(Spoilt(files={**TREE, file: text}, file=file, legacy=legacy))


@pytest.mark.slow
@given(
    st.sampled_from([file for file in TREE if kind_of(file) == "zod"]),
    st.lists(st.sampled_from(TOKENS["zod"]) | st.text(max_size=3), max_size=20),
    st.integers(0, 2**32),
    st.sampled_from(POLICIES),
)
def test_any_tokens_in_a_zod_module_get_findings(
    file: str, tokens: list[str], seed: int, legacy: LegacyPolicy
) -> None:
    """Tokens in any order, at any place of a module that was good."""
    good = TREE[file]
    at = random.Random(seed).randrange(len(good) + 1)  # noqa: S311  # not a secret
    text = good[:at] + "".join(tokens) + good[at:]

    try_out(Spoilt(files={**TREE, file: text}, file=file, legacy=legacy))
