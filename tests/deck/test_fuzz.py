"""Spoilt decks: any file may hold anything, and loading ends, soon, with words.

Every input is one file of a small tree of decks, spoilt, and the tree is loaded the
way it always is. ``make test`` tries a few of the inputs, ``make soak`` more than ten
thousand; a failure names its seed, and `spoilt` makes the same input of it again.
"""

import json
import posixpath
import random
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gambit_actors.cli.fixing import apply_edits
from gambit_actors.deck.builtin import DECK_SCHEME, DECKS, SNIPPET_SCHEME, SNIPPETS
from gambit_actors.deck.codes import CODES as DECK_CODES
from gambit_actors.deck.loader import DeckCache, Loaded
from gambit_actors.deck.model import Deck, Link
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.diagnostics import CODES as SCHEMA_CODES
from gambit_actors.schema.diagnostics import Diagnostic, Severity
from tests.deck.mutations import KINDS, TOKENS, Kind, Mutator, kind_of, real_files
from tests.deck.reading import Texts, deck_text

CPU_SECONDS = 2.0
IS_SOAK = settings.get_current_profile_name() == "soak"
INPUTS_OF_A_KIND = 3_400 if IS_SOAK else 400

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
REAL_TREE = {**real_files("decks"), "support/actions/order_lookup/lookup.py": ""}
ANYTHING = DescribedModule(context_schema={}, response_schema={"type": "object"})
MODULES = {
    "lookup.py": DescribedModule(
        context_schema="./shared.zod.ts", response_schema={"type": "object"}
    ),
    "support/actions/order_lookup/lookup.py": ANYTHING,
}
# What a deck is told because of another that tries to use it, or to embed it.
FROM_OUTSIDE = {"GD040", "GD041", "GD050", "GD051", "GD054", "GD055", "GD056"}
TRIALS = ("scenarios", "graders", "testDecks", "graderDecks")
OPENING = re.compile(
    r"\s*(?:\[+\s*[\"']?(?P<table>\w+)|[\"']?(?P<key>\w+)[\"']?\s*[.=]\s*[\[{])"
)
Files = Mapping[str, str | OSError]


class Spoilt(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of decks with one file that may hold anything."""

    files: Files
    root: str
    file: str

    @property
    def is_on_trial(self) -> bool:
        """Whether the file is only there to try the root out."""
        return "scenarios/" in self.file or "graders/" in self.file


class TookTooLong(BaseException):
    """The limit is reached. Not an Exception, so that nobody takes it for theirs."""


def spoilt(kind: Kind, seed: int) -> Spoilt:
    """Make the input of a seed."""
    mutator = Mutator(seed, kind)
    chance = mutator.chance
    is_real = chance.random() < 0.2
    tree, root = (REAL_TREE, "support/PROMPT.md") if is_real else (TREE, "PROMPT.md")
    file = chance.choice([file for file in tree if kind_of(file) == kind])
    text = mutator.mutated(tree[file])
    content = text if chance.random() < 0.99 else OSError("the disk is broken")
    return Spoilt(files={**tree, file: content}, root=root, file=file)


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Stop what computes for too long, where the system has a clock for that."""

    def stop(*_: object) -> NoReturn:
        raise TookTooLong

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def try_out(given: Spoilt) -> float:
    """Load a tree and check all that must hold; how many seconds the loading took."""
    began = time.process_time()
    with cpu_limit(CPU_SECONDS):
        loaded = load(given.files, given.root)
    taken = time.process_time() - began
    assert taken <= CPU_SECONDS
    check(given.files, loaded)
    if given.is_on_trial:
        assert loaded.deck is not None, "a broken trial must not break what it tries"
    changed = with_edits(given.files, loaded.diagnostics)
    if changed is not None:
        with cpu_limit(CPU_SECONDS):
            again = load(changed, given.root)
        check(changed, again)
    return taken


def load(files: Files, root: str) -> Loaded:
    """Load a tree with nothing remembered from others."""
    return DeckCache().load(Texts(files, modules=MODULES), root)


def check(files: Files, loaded: Loaded) -> None:
    """Check that findings are well formed, in place, and worth what they say."""
    for finding in loaded.diagnostics:
        check_finding(files, finding)
    errors = [d for d in loaded.diagnostics if d.severity == "error"]
    if loaded.deck is None:
        assert errors, "a deck that cannot be used needs a reason"
        return
    needed = {deck.path for deck in needed_decks(loaded.deck)}
    for finding in errors:
        if finding.file in needed and finding.code not in FROM_OUTSIDE:
            text = text_of(files, finding.file) or ""
            is_of_trial = is_in_trial(text, finding.line)
            assert is_of_trial, f"a deck with an error is not to be used: {finding}"


def is_in_trial(text: str, line: int) -> bool:
    """Whether a line belongs to a list of scenarios or graders."""
    opened = ""
    for written in text.split("\n")[:line]:
        if opening := OPENING.match(written):
            opened = opening["table"] or opening["key"]
    return opened in TRIALS


def needed_decks(root: Deck) -> list[Deck]:
    """A deck and those it cannot do without, directly or not."""
    found = {root.path: root}
    waiting = [root]
    while waiting:
        deck = waiting.pop()
        handlers = deck.handlers
        links = [action.target for action in deck.actions]
        links += [
            handler.link
            for handler in (handlers.on_busy, handlers.on_idle, handlers.on_error)
            if handler is not None
        ]
        for link in links:
            if isinstance(link, Link) and link.path not in found:
                found[link.path] = link.deck
                waiting.append(link.deck)
    return list(found.values())


def check_finding(files: Files, finding: Diagnostic) -> None:
    """Check one finding: its words, and that its place is in its file."""
    assert finding.code in DECK_CODES or finding.code in SCHEMA_CODES, finding
    assert finding.severity in get_args(Severity), finding
    for words in (finding.message, finding.hint):
        assert words is None or words.splitlines() == [words], finding
        assert words is None or words.strip(), finding
    assert msgspec.json.encode(finding)  # Which half a surrogate pair would prevent.
    text = text_of(files, finding.file)
    assert text is not None, f"a finding in no file: {finding}"
    lines = text.split("\n")
    assert 1 <= finding.line <= len(lines), finding
    assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1, finding
    edits = sorted(finding.edits, key=lambda edit: edit.start)
    ends = [0, *(edit.end for edit in edits)]
    for edit, end_before in zip(edits, ends, strict=False):
        assert end_before <= edit.start <= edit.end <= len(text), finding


def text_of(files: Files, file: str) -> str | None:
    """The text that a finding is about."""
    if file.startswith(SNIPPET_SCHEME):
        return SNIPPETS[file.removeprefix(SNIPPET_SCHEME)]
    if file.startswith(DECK_SCHEME):
        return DECKS[file.removeprefix(DECK_SCHEME)]
    text = files.get(posixpath.normpath(file))
    return "" if isinstance(text, OSError) else text


def with_edits(files: Files, findings: tuple[Diagnostic, ...]) -> Files | None:
    """The files after all edits that findings suggest; None if there are none."""
    changed = dict(files)
    for file in {finding.file for finding in findings if finding.edits}:
        text = changed[posixpath.normpath(file)]
        assert isinstance(text, str)
        own = [finding for finding in findings if finding.file == file]
        applied = apply_edits(text, own)
        assert applied.fixed, f"edits that change nothing: {own}"
        changed[posixpath.normpath(file)] = applied.text
    return changed if changed != files else None


@pytest.mark.parametrize(
    ("tree", "root"), [(TREE, "PROMPT.md"), (REAL_TREE, "support/PROMPT.md")]
)
def test_unspoilt_trees_are_good(tree: dict[str, str], root: str) -> None:
    """What is spoilt below has no errors before, so the inputs say something."""
    loaded = load(tree, root)

    assert [d for d in loaded.diagnostics if d.severity == "error"] == []
    assert loaded.deck is not None


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
        except (Exception, TookTooLong) as problem:
            shown = f"{given.file} = {given.files[given.file]!r:.5000}"
            msg = f"spoilt({kind!r}, {seed}): {type(problem).__name__} with {shown}"
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
)
def test_any_frontmatter_gets_findings(
    file: str, table: dict[str, object], body: str
) -> None:
    """Any known keys with any values, in any deck or snippet of a tree."""
    rows = [f"{key} = {toml_from(value)}" for key, value in table.items()]
    text = deck_text("\n".join(rows), body)

    try_out(Spoilt(files={**TREE, file: text}, root="PROMPT.md", file=file))


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
@given(st.sampled_from([file for file in TREE if kind_of(file) == "json"]), SCHEMAS)
def test_any_json_gets_findings(file: str, schema: object) -> None:
    """Any keywords of JSON Schema with any values, wherever a tree has a schema."""
    text = json.dumps(schema)

    try_out(Spoilt(files={**TREE, file: text}, root="PROMPT.md", file=file))


@pytest.mark.slow
@given(
    st.sampled_from([file for file in TREE if kind_of(file) == "zod"]),
    st.lists(st.sampled_from(TOKENS["zod"]) | st.text(max_size=3), max_size=20),
    st.integers(0, 2**32),
)
def test_any_tokens_in_a_zod_module_get_findings(
    file: str, tokens: list[str], seed: int
) -> None:
    """Tokens in any order, at any place of a module that was good."""
    good = TREE[file]
    at = random.Random(seed).randrange(len(good) + 1)  # noqa: S311  # not a secret
    text = good[:at] + "".join(tokens) + good[at:]

    try_out(Spoilt(files={**TREE, file: text}, root="PROMPT.md", file=file))
