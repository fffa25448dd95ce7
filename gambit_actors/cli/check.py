"""``gambit check``: every mistake in decks, where it is, and what to do about it.

Decks are read through a `Snapshot`, so nothing here depends on how they are loaded:
a `Loader` is handed in, and only `check_from_options` knows the real one.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import click
import msgspec
from rich.console import Console
from rich.text import Text

from gambit_actors.cli.checking_models import ModelNames
from gambit_actors.cli.deck_folders import (
    Found,
    find_decks,
    is_deck_file,
    missing_intents,
    shown_path,
    write_intents,
)
from gambit_actors.cli.fixing import Fixes, fix_texts
from gambit_actors.cli.flow import printable
from gambit_actors.cli.rendering import STYLES, lines_of, render, render_diff
from gambit_actors.cli.rewriting import Fence, rewrite
from gambit_actors.cli.snapshot import Snapshot
from gambit_actors.deck.findings import LEGACY, LegacyPolicy
from gambit_actors.deck.loader import DeckCache, LoadedDecks, load_decks
from gambit_actors.deck.reader import DeckReader
from gambit_actors.errors import InvalidSettings
from gambit_actors.schema.diagnostics import Diagnostic, Severity
from gambit_actors.store.deck_files import DiskReader

# What is written to a file has no width; whoever reads it has.
_FILE_WIDTH = 100


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for on the command line."""

    paths: tuple[str, ...] = ()
    strict: bool = False
    fix: bool = False
    diff: bool = False
    as_json: bool = False
    legacy: LegacyPolicy | None = None
    scaffold: bool = False
    quiet: bool = False
    verbose: bool = False
    exclude: tuple[str, ...] = ()
    settings: str | None = None


Loader: TypeAlias = Callable[[DeckReader, Sequence[str]], LoadedDecks]
"""Loads several decks from one state of their files."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What checking came to.

    Attributes:
        decks: how many decks were checked.
        files: how many files they are made from.
        diagnostics: each finding once, in the order of the files.
        texts: the files that findings are about, as they were read.
    """

    decks: int
    files: int
    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str]

    def count(self, severity: Severity) -> int:
        """How many findings there are of a severity."""
        return sum(found.severity == severity for found in self.diagnostics)

    def exit_code(self, *, strict: bool) -> int:
        """What to tell the shell."""
        warnings = self.count("warning") if strict else 0
        return 1 if self.count("error") + warnings else 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The document that ``--json`` writes."""

    version: int = 1
    files_checked: int
    decks_checked: int
    errors: int
    warnings: int
    notes: int
    diagnostics: tuple[Diagnostic, ...]


class Checker:
    """Checks the same decks over and over, as they are or as they might be.

    Args:
        found: the decks.
        reader: reads their files.
        load: makes decks of them.
        settings: the settings file for all of them; if not told, the nearest of each.
    """

    def __init__(
        self,
        found: Found,
        *,
        reader: DeckReader,
        load: Loader,
        settings: str | None = None,
    ) -> None:
        self._found = found
        self._models = ModelNames(settings)
        self._reader = reader
        self._load = load
        # A file that is reached under two names has the first of them, for good.
        self._names: dict[str, str] = {}

    def check(self, pretended: Mapping[str, str] | None = None) -> Checked:
        """Load all decks, as if some files had other texts."""
        real_path = self._reader.real_path
        snapshot = Snapshot(
            self._reader,
            {real_path(file): text for file, text in (pretended or {}).items()},
        )
        findings = [*self._found.findings, *missing_intents(self._found.decks)]
        files = set[str]()
        loaded = self._load(snapshot, self._found.decks)
        findings += loaded.diagnostics
        for deck in loaded.decks:
            sources = deck.sources if deck else ()
            files.update(real_path(file) for file in sources if not _is_uri(file))
        for file, words in snapshot.texts.items():
            if is_deck_file(Path(file).name):
                findings += self._models.findings(file, words)
        named = {self._named(found) for found in findings}
        return Checked(
            decks=len(self._found.decks),
            files=len(files | snapshot.files),
            diagnostics=tuple(sorted(named, key=_order)),
            texts={
                name: text
                for path, name in self._names.items()
                if (text := snapshot.text_of(path)) is not None
            },
        )

    def _named(self, found: Diagnostic) -> Diagnostic:
        if _is_uri(found.file):
            return found
        name = self._names.setdefault(
            self._reader.real_path(found.file), shown_path(found.file)
        )
        return msgspec.structs.replace(found, file=name)


def check_paths(paths: Sequence[str], *, reader: DeckReader, load: Loader) -> Checked:
    """Check the decks that paths name or hold; nothing is written."""
    return Checker(find_decks(paths), reader=reader, load=load).check()


def check_from_options(asked: Mapping[str, object]) -> int:
    """Do what was asked for by the names of `Options`, and give the exit code.

    Raises:
        UsageError: the options or paths cannot be meant.
    """
    options = msgspec.convert(asked, Options)
    cache = DeckCache()
    legacy = options.legacy or LEGACY

    def load(reader: DeckReader, decks: Sequence[str]) -> LoadedDecks:
        return load_decks(reader, decks, legacy=legacy, cache=cache)

    return check_with(options, reader=DiskReader(), load=load)


def check_with(options: Options, *, reader: DeckReader, load: Loader) -> int:
    """Do what was asked for with a reader and a loader of one's own."""
    _refuse_what_cannot_be_meant(options)
    # Standard output is for the document alone if one is asked for.
    console = Console(highlight=False, stderr=options.as_json)
    paths = options.paths or (".",)
    found = find_decks(paths, exclude=options.exclude)
    if options.scaffold:
        for sentence in write_intents(found.decks):
            if not options.quiet or sentence.startswith("Not"):
                _say(console, sentence)
    checker = Checker(found, reader=reader, load=load, settings=options.settings)
    try:
        checked = left = checker.check()
    except InvalidSettings as problem:
        raise click.ClickException(printable(str(problem))) from problem
    is_kept = True
    if options.fix or options.diff:
        left, is_kept = _fix(checked, checker, console, options)
    # What was not written has changed nothing, and so not the exit code.
    code = (checked if options.diff else left).exit_code(strict=options.strict)
    code = code if is_kept else 1
    if options.as_json:
        click.echo(_document(left))
    else:
        _show(console, left, options)
    return code


def _refuse_what_cannot_be_meant(options: Options) -> None:
    if options.diff and options.as_json:
        msg = "--diff and --json do not go together: the edits are in the JSON."
        raise click.UsageError(msg)
    if options.diff and options.scaffold:
        msg = "--diff and --scaffold do not go together: --diff writes nothing."
        raise click.UsageError(msg)
    for path in map(Path, options.paths):
        if not path.is_dir() and not is_deck_file(path.name):
            name = printable(str(path))
            msg = f"{name} is not a deck: name a PROMPT.md, or a folder to search."
            raise click.UsageError(msg)


def _fix(
    checked: Checked, checker: Checker, console: Console, options: Options
) -> tuple[Checked, bool]:
    """Apply what edits there are, say so, and check again.

    Also tells whether everything that was to be written could be.
    """
    fence = Fence(options.paths)
    fixes = fix_texts(
        checked,
        checker.check,
        may_change=lambda file: fence.objection(file) is None,
    )
    objections = {
        found.file: why
        for found in checked.diagnostics
        if found.edits and found.file in checked.texts
        if (why := fence.objection(found.file))
    }
    for file, error in fixes.refused.items():
        objections[file] = f"that would bring a new error: {error.message}"
    is_kept = True
    for file, after in fixes.after.items():
        if not options.diff and (why := rewrite(file, fixes.before[file], after)):
            objections[file] = why
            is_kept = False
        elif options.diff or not (options.quiet or options.as_json):
            _print(console, render_diff(file, fixes.before[file], after))
            _say(console, "")
    _tell_fixes(console, fixes, objections, options)
    return checker.check(fixes.after if options.diff else {}), is_kept


def _tell_fixes(
    console: Console, fixes: Fixes, objections: Mapping[str, str], options: Options
) -> None:
    sentences = [
        f"Not fixed: {file}, because {why.removesuffix('.')}."
        for file, why in sorted(objections.items())
    ]
    fixed = [found.file for found in fixes.fixed if found.file not in objections]
    if fixed and not options.quiet:
        done = "Would fix" if options.diff else "Fixed"
        files = _count(len(set(fixed)), "file")
        sentences.append(f"{done} {_count(len(fixed), 'problem')} in {files}.")
    for sentence in sentences:
        style = "yellow" if sentence.startswith("Not") else "green"
        _say(console, sentence, style=style)
    if sentences and not options.as_json:
        _say(console, "")


def _show(console: Console, checked: Checked, options: Options) -> None:
    width = console.width if console.is_terminal else _FILE_WIDTH
    lines: dict[str, list[str]] = {}
    for found in checked.diagnostics:
        if options.quiet and found.severity == "note":
            continue
        if found.code == "GD090" and not options.verbose:
            continue  # One line at the end has all of them.
        text = checked.texts.get(found.file)
        if text is not None and found.file not in lines:
            lines[found.file] = lines_of(text)
        # An INTENT.md that is missing is not the fault of any line.
        about = None if found.code == "GD090" else lines.get(found.file)
        _print(console, render(found, about, width=width))
        _say(console, "")
    if not options.quiet:
        _print(console, _summary(checked, options))
        if not options.verbose:
            _tell_intents(console, checked)


def _tell_intents(console: Console, checked: Checked) -> None:
    bare = sum(found.code == "GD090" for found in checked.diagnostics)
    if bare:
        rest = "has no INTENT.md to say what it is for"
        if bare > 1:
            rest = "have no INTENT.md to say what they are for"
        _say(
            console,
            f"{_count(bare, 'deck')} {rest};"
            " --scaffold writes an outline, --verbose tells where.",
        )


def _summary(checked: Checked, options: Options) -> Text:
    counts = {severity: checked.count(severity) for severity in STYLES}
    decks, files = _count(checked.decks, "deck"), _count(checked.files, "file")
    if not counts["error"] and not counts["warning"]:
        notes = f", {_count(counts['note'], 'note')}" if counts["note"] else ""
        verdict = "All would be good" if options.diff else "All good"
        return Text(f"{verdict}: {decks}, {files}{notes}.\n", style="green")
    *most, last = [_count(n, severity) for severity, n in counts.items() if n]
    found = f"{', '.join(most)} and {last}" if most else last
    where = f" in {decks} ({files})" if checked.decks else ""
    verb = "Would leave" if options.diff else "Found"
    text = Text(f"{verb} {found}{where}.\n", style="bold")
    fixable = sum(bool(one.edits) for one in checked.diagnostics)
    if fixable and not options.fix and not options.diff:
        text.append(f"{fixable} can be fixed with --fix.\n", style="not bold")
    return text


def _document(checked: Checked) -> bytes:
    report = Report(
        files_checked=checked.files,
        decks_checked=checked.decks,
        errors=checked.count("error"),
        warnings=checked.count("warning"),
        notes=checked.count("note"),
        diagnostics=checked.diagnostics,
    )
    try:
        return msgspec.json.encode(report)
    except UnicodeEncodeError:
        # Bytes that are not UTF-8, in a file or its name, have no JSON form.
        plain = msgspec.to_builtins(report)
        return msgspec.json.encode(_without_surrogates(plain))


def _without_surrogates(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return [_without_surrogates(entry) for entry in value]
        case dict():
            return {key: _without_surrogates(entry) for key, entry in value.items()}
        case _:
            return value


def _order(found: Diagnostic) -> tuple[object, ...]:
    return (
        found.file,
        found.line,
        found.column,
        list(STYLES).index(found.severity),
        found.code,
        found.message,
        found.hint or "",
        [(edit.start, edit.end, edit.text) for edit in found.edits],
    )


def _is_uri(file: str) -> bool:
    return "://" in file


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _say(console: Console, sentence: str, *, style: str = "") -> None:
    _print(console, Text(f"{printable(sentence)}\n", style=style))


def _print(console: Console, text: Text) -> None:
    # The terminal may wrap a sentence where it likes; a source line is cut to fit.
    console.print(text, end="", soft_wrap=True)
