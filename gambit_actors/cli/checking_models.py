"""Models of decks that no settings know, for ``gambit check``.

Only decks that a settings file holds for are looked at: without one, nobody can say
which providers there are to be. No key is looked for, and nobody is asked anything.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from gambit_actors.deck.documents import document_from_text
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.tables import Table
from gambit_actors.errors import InvalidSettings
from gambit_actors.schema.diagnostics import Diagnostic
from gambit_actors.settings.places import nearest_file

if TYPE_CHECKING:
    from gambit_actors.settings.model import Settings


class ModelNames:
    """Holds the names of models against the settings of their decks.

    Args:
        file: the settings file for all decks; if not told, the nearest above each.
    """

    def __init__(self, file: str | None = None) -> None:
        self._file = None if file is None else Path(file)
        self._read: dict[Path, Settings | tuple[Diagnostic, ...]] = {}

    def findings(self, deck: str, text: str) -> tuple[Diagnostic, ...]:
        """What is to be said of the models of one deck; or of its settings.

        Args:
            deck: its file.
            text: what is in that.

        Raises:
            InvalidSettings: its settings cannot be read at all.
        """
        path = self._file or nearest_file(Path.cwd(), deck)
        if path is None:
            return ()
        if path not in self._read:
            self._read[path] = _settings_in(path)
        settings = self._read[path]
        if isinstance(settings, tuple):
            return settings
        return tuple(_unknown_models(deck, text, settings))


def _settings_in(path: Path) -> "Settings | tuple[Diagnostic, ...]":
    """The settings of a file, or what is wrong with them."""
    # Late, because it takes the model servers, and most decks have no such file.
    from gambit_actors.settings.finding import find_settings

    try:
        # Whose file it is does not matter, as no key is in reach.
        return find_settings({}, file=path)
    except InvalidSettings as problem:
        found = tuple(d for d in problem.diagnostics if isinstance(d, Diagnostic))
        if not found:
            raise
        return found


def _unknown_models(deck: str, text: str, settings: "Settings") -> Findings:
    from gambit_actors.settings.readiness import unknown_in

    findings = Findings()
    document = document_from_text(deck, text)
    table = Table(document, findings, document.values).values.get("modelParams")
    if not isinstance(table, dict):
        return findings
    params = Table(document, findings, table, ("modelParams",))
    given = table.get("model")
    models = given if isinstance(given, list) else [given]
    for index, model in enumerate(models):
        unknown = unknown_in(settings, model.strip()) if _is_name(model) else None
        if unknown is not None:
            words = f"modelParams.model: {unknown.words}, as {settings.file} has it."
            hint = unknown.guess or unknown.listed
            key = ("model", index) if isinstance(given, list) else "model"
            params.report("GD017", "warning", words, key=key, hint=hint)
    return findings


def _is_name(model: object) -> bool:
    return isinstance(model, str) and bool(model.strip())
