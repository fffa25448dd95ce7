"""What every benchmark does on the command line: its options, and its exit code."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.costs import Verdict

QUICK_NOTE = "A quick run: it shows that everything works, not how fast."


def options_from(
    arguments: Sequence[str] | None, *, prog: str, description: str
) -> argparse.Namespace:
    """Read the options: quick, strict and json."""
    return new_parser(prog=prog, description=description).parse_args(arguments)


def new_parser(*, prog: str, description: str) -> argparse.ArgumentParser:
    """A parser for those options, to which a benchmark may add its own."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--quick", action="store_true", help="a short smoke test")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if a target is missed"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the results here"
    )
    return parser


def finish(
    options: argparse.Namespace, report: object, verdicts: Sequence[Verdict]
) -> int:
    """Write the report if asked to; give the exit code."""
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    is_missed = any(verdict.is_met is not True for verdict in verdicts)
    return 1 if options.strict and is_missed else 0
