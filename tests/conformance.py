"""Ties tests to the promises they prove, and writes the page that shows it.

A pytest plugin. It owns the meaning of ``@pytest.mark.spec("ID", ...)``: the ids
are those of ``requirements.toml``, and a mark with any other id is a collection
error. With ``--write-conformance`` a collection also renders
``docs/reference/conformance.md``. It knows nothing about what the tests do.
"""

import tomllib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tests" / "requirements.toml"
PAGE = ROOT / "docs" / "reference" / "conformance.md"

PREAMBLE = """\
# Conformance

Which promise is proved by which test. This page is generated from the marks on
the tests: change those, then run `make conformance`.
"""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A titled group of promises, in the order they are listed."""

    key: str
    title: str
    promises: Mapping[str, str]


def load_sections(path: Path = REQUIREMENTS) -> list[Section]:
    """Read the promises, grouped and ordered as in the file."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Section(key=key, title=table["title"], promises=table["promises"])
        for key, table in tables.items()
    ]


def known_ids(sections: Iterable[Section]) -> frozenset[str]:
    """Collect the ids of all promises."""
    return frozenset(id_ for section in sections for id_ in section.promises)


def faults_in_marks(
    marks: Iterable[tuple[object, ...]], *, test: str, known: frozenset[str]
) -> list[str]:
    """Say what is wrong with the ``spec`` marks of one test, if anything.

    Args:
        marks: The positional arguments of each mark.
        test: The node id, named in every fault.
        known: The ids a mark may use.
    """
    faults = []
    for ids in marks:
        if not ids:
            faults.append(f"{test}: the spec mark names no requirement id")
        faults += [
            f"{test}: unknown requirement id {id_!r} (see tests/requirements.toml)"
            for id_ in ids
            if not (isinstance(id_, str) and id_ in known)
        ]
    return faults


def render(sections: Iterable[Section], proofs: Mapping[str, Iterable[str]]) -> str:
    """Write the conformance page.

    Args:
        sections: All promises.
        proofs: For each id, the names of the tests that prove it.
    """
    parts = [PREAMBLE]
    counts, still_open = [], []
    for section in sections:
        rows, proved = [], 0
        for id_, promise in section.promises.items():
            tests = sorted(set(proofs.get(id_, ())))
            proved += bool(tests)
            if not tests:
                still_open.append(f"- {id_}: {promise}")
            shown = "<br>".join(f"`{test}`" for test in tests) or "open"
            rows.append(f"| {id_} | {_cell(promise)} | {shown} |")
        counts.append((section.title, proved, len(rows)))
        table = ["| id | promise | proved by |", "|---|---|---|", *rows]
        parts.append(f"## {section.title}\n\n" + "\n".join(table) + "\n")
    parts.append(_render_counts(counts))
    parts.append("## Still open\n\n" + ("\n".join(still_open) or "Nothing.") + "\n")
    return "\n".join(parts)


def _render_counts(counts: list[tuple[str, int, int]]) -> str:
    total = ("All", sum(row[1] for row in counts), sum(row[2] for row in counts))
    rows = [
        f"| {title} | {proved} | {count - proved} | {count} |"
        for title, proved, count in [*counts, total]
    ]
    head = ["| section | proved | open | all |", "|---|---|---|---|"]
    return "## Counts\n\n" + "\n".join([*head, *rows]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def proofs_from_items(items: Iterable[pytest.Item]) -> dict[str, set[str]]:
    """List, for each id, the tests marked with it; parameters are folded away."""
    proofs: dict[str, set[str]] = {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        for mark in item.iter_markers("spec"):
            for id_ in mark.args:
                proofs.setdefault(id_, set()).add(test)
    return proofs


# --- hooks -------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that turns a collection into the conformance page."""
    parser.getgroup("conformance").addoption(
        "--write-conformance",
        metavar="PATH",
        nargs="?",
        const=str(PAGE),
        help="write the conformance page (to =PATH) from all collected tests",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to write a page from anything less than the whole suite."""
    if config.getoption("--write-conformance") is None:
        return
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        raise pytest.UsageError("--write-conformance reads the whole suite: no paths")
    if config.getoption("numprocesses", None):
        raise pytest.UsageError("--write-conformance collects in one process: no -n")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a file whose tests carry a bad ``spec`` mark into a collection error."""
    report = yield
    if not report.passed:
        return report
    known = known_ids(load_sections())
    faults = {
        fault: None  # a dict, because each parametrisation repeats its test's fault
        for node in report.result
        if isinstance(node, pytest.Item)
        for fault in faults_in_marks(
            (mark.args for mark in node.iter_markers("spec")),
            test=node.nodeid.partition("[")[0],
            known=known,
        )
    }
    if not faults:
        return report
    return pytest.CollectReport(collector.nodeid, "failed", "\n".join(faults), [])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Write the page, if asked to, before -k or -m can leave tests out."""
    path = config.getoption("--write-conformance")
    if path is None or session.testsfailed:
        return
    page = render(load_sections(), proofs_from_items(items))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(page, encoding="utf-8")
