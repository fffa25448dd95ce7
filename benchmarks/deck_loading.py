"""``make bench``: what it costs to load decks, and to check the arguments of tools.

Run as ``python -m benchmarks.deck_loading``. ``--quick`` is a smoke test whose numbers
mean little; ``--strict`` makes a missed target an error; ``--json FILE`` keeps it all.
"""

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks import arguments, deck_tree
from benchmarks.arguments import Disagreement, all_arguments, measure_arguments
from benchmarks.costs import Cost, Verdict, cost_from, ratio_of
from benchmarks.deck_tree import TreeFacts, write_tree
from benchmarks.machine import Machine, this_machine
from benchmarks.peers import load_jsonschema
from benchmarks.running import QUICK_NOTE, finish, options_from
from benchmarks.tables import machine_lines, section, times, verdict_rows
from benchmarks.timing import Effort, race
from gambit_actors.deck.loader import DeckCache, Loaded
from gambit_actors.deck.model import Deck, Link
from gambit_actors.store.deck_files import DiskReader

MOST_OF_COLD = 0.1
LIBRARIES = ("tomli", "tree-sitter", "msgspec", "jsonschema-rs", "jsonschema")

COLD = "cold: nothing is known"
WARM = "warm: nothing has changed"
ONE_PROMPT = "one prompt has changed"
ONE_SCHEMA = "a schema that most import has changed"

LOADINGS = (COLD, WARM, ONE_PROMPT, ONE_SCHEMA)

_TREE = ("tree of 200 decks", "on disk")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    values: int
    loading: Effort
    arguments: Effort


FULL = Plan(
    values=100_000,
    loading=Effort(rounds=8, turn_seconds=0.5),
    arguments=Effort(rounds=3, turn_seconds=0.0),
)
QUICK = Plan(
    values=200,
    loading=Effort(rounds=1, turn_seconds=0.0),
    arguments=Effort(rounds=1, turn_seconds=0.0),
)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found; also what ``--json`` writes."""

    machine: Machine
    is_quick: bool
    tree: TreeFacts
    values: int
    loading: list[Cost]
    arguments: list[Cost]
    verdicts: list[Verdict]


class BadTree(Exception):
    """The tree did not load as it was written."""


def main(words: Sequence[str] | None = None) -> int:
    """Check, measure, print; give the exit code."""
    options = options_from(
        words,
        prog="benchmarks.deck_loading",
        description="Measure loading decks and checking the arguments of tools.",
    )
    try:
        report = _measure(QUICK if options.quick else FULL, is_quick=options.quick)
    except (BadTree, Disagreement) as problem:
        print(f"There is no result: {problem}.", file=sys.stderr)
        return 2
    for line in _report_lines(report):
        print(line)
    return finish(options, report, report.verdicts)


def _measure(plan: Plan, *, is_quick: bool) -> Report:
    machine = this_machine(LIBRARIES)
    for line in machine_lines(machine):
        print(line)
    if is_quick:
        print(QUICK_NOTE)
    with tempfile.TemporaryDirectory() as folder:
        # A tree for each contender: some of them change theirs.
        roots = {name: Path(folder) / str(n) for n, name in enumerate(LOADINGS)}
        tree, *_ = [write_tree(root) for root in roots.values()]
        loading = measure_loading(roots, plan.loading)
    jsonschema = load_jsonschema()
    checked = [
        cost
        for each in all_arguments(plan.values)
        for cost in measure_arguments(each, jsonschema, plan.arguments)
    ]
    return Report(
        machine=machine,
        is_quick=is_quick,
        tree=tree,
        values=plan.values,
        loading=loading,
        arguments=checked,
        verdicts=[_verdict(loading)],
    )


def measure_loading(roots: Mapping[str, Path], effort: Effort) -> list[Cost]:
    """The cost per deck of loading the tree, knowing nothing or nearly everything.

    Raises:
        BadTree: there is something wrong with the tree.
    """
    for root in roots.values():
        check_tree(DeckCache().load(DiskReader(root), deck_tree.ENTRYPOINT))
    runs = {
        COLD: _cold(roots[COLD]),
        WARM: _warm(roots[WARM]),
        ONE_PROMPT: _changing(roots[ONE_PROMPT], deck_tree.CHANGED_PROMPT, "\n"),
        ONE_SCHEMA: _changing(roots[ONE_SCHEMA], deck_tree.CHANGED_SCHEMA, "// new\n"),
    }
    return [
        cost_from(timing, deck_tree.DECKS, (*_TREE, name))
        for name, timing in race(runs, effort).items()
    ]


def check_tree(loaded: Loaded) -> None:
    """Make sure that every deck was found and is good.

    Raises:
        BadTree: with the first thing that is wrong.
    """
    for finding in loaded.diagnostics:
        msg = f"{finding.file}:{finding.line}: {finding.message} [{finding.code}]"
        raise BadTree(msg)
    decks = {deck.path for deck in _decks(loaded.usable())}
    if len(decks) != deck_tree.DECKS:
        msg = f"{len(decks)} decks were found, not {deck_tree.DECKS}"
        raise BadTree(msg)


def _decks(deck: Deck) -> Iterator[Deck]:
    yield deck
    handlers = (deck.handlers.on_busy, deck.handlers.on_error)
    links = [handler.link for handler in handlers if handler is not None]
    links += [action.target for action in deck.actions if type(action.target) is Link]
    links += [reference.link for reference in (*deck.scenarios, *deck.graders)]
    for link in links:
        yield from _decks(link.deck)


def _cold(root: Path) -> Callable[[], Loaded]:
    reader = DiskReader(root)
    return lambda: DeckCache().load(reader, deck_tree.ENTRYPOINT)


def _warm(root: Path) -> Callable[[], Loaded]:
    reader, cache = DiskReader(root), DeckCache()
    known = cache.load(reader, deck_tree.ENTRYPOINT)

    def run() -> Loaded:
        loaded = cache.load(reader, deck_tree.ENTRYPOINT)
        assert loaded is known, "nothing has changed, and it was loaded again"
        return loaded

    return run


def _changing(root: Path, name: str, addition: str) -> Callable[[], Loaded]:
    """Load with one file written anew before; the writing is part of the time."""
    reader, cache, file = DiskReader(root), DeckCache(), root / name
    known = cache.load(reader, deck_tree.ENTRYPOINT)
    text = file.read_text(encoding="utf-8")
    texts = itertools.cycle((text + addition, text))

    def run() -> Loaded:
        nonlocal known
        file.write_text(next(texts), encoding="utf-8")
        loaded = cache.load(reader, deck_tree.ENTRYPOINT)
        assert loaded is not known, "a file has changed, and that was not seen"
        known = loaded
        return loaded

    return run


def _verdict(loading: Sequence[Cost]) -> Verdict:
    ratio = ratio_of(loading, _TREE, WARM, COLD)
    return Verdict(
        target=f"warm at most {MOST_OF_COLD:g}x cold",
        subject=_TREE[0],
        case=_TREE[1],
        found=ratio,
        is_met=None if ratio is None else ratio <= MOST_OF_COLD,
    )


def _report_lines(report: Report) -> Iterator[str]:
    tree = report.tree
    yield (
        f"The tree: {tree.decks} decks, {tree.files} files, {tree.size} bytes;"
        f" {tree.importers} files import the shared schema that changes."
    )
    yield f"Equal judgement: {report.values} values for each schema."
    yield from section("Loading the tree", _loading_rows(report.loading))
    yield from section("Checking arguments", _argument_rows(report.arguments))
    verdicts = verdict_rows(report.verdicts, subject="subject", case="where")
    yield from section("Targets", verdicts)


def _loading_rows(costs: Sequence[Cost]) -> list[list[str]]:
    rows = [["loading", "ms", "median", "us/deck", "x cold"]]
    for cost in costs:
        whole = [us * deck_tree.DECKS / 1e3 for us in (cost.best_us, cost.median_us)]
        ratio = times(ratio_of(costs, _TREE, cost.name, COLD))
        numbers = [*(f"{ms:.2f}" for ms in whole), f"{cost.best_us:.1f}", ratio]
        rows.append([cost.name, *numbers])
    return rows


def _argument_rows(costs: Sequence[Cost]) -> list[list[str]]:
    rows = [["schema", "validator", "us/value", "median", "x floor", "Python / it"]]
    for cost in costs:
        where = (cost.subject, cost.case)
        numbers = [f"{cost.best_us:.2f}", f"{cost.median_us:.2f}"]
        numbers.append(times(ratio_of(costs, where, cost.name, arguments.FLOOR)))
        numbers.append(times(ratio_of(costs, where, arguments.PYTHON, cost.name)))
        rows.append([cost.subject, cost.name, *numbers])
    return rows


if __name__ == "__main__":
    sys.exit(main())
