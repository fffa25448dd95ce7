"""What the tests of decks share: folders that are tables of texts."""

import posixpath
import textwrap
from collections.abc import Mapping

from gambit_actors.deck.loader import Loaded, load_deck
from gambit_actors.deck.reader import DescribedModule, DescribedType
from gambit_actors.schema.diagnostics import Diagnostic


class Texts:
    """A reader of files that are not on a disk."""

    def __init__(
        self,
        files: Mapping[str, str | OSError],
        *,
        modules: Mapping[str, DescribedModule] | None = None,
        links: Mapping[str, str] | None = None,
    ) -> None:
        self.files = dict(files)
        self.modules = dict(modules or {})
        self.links = dict(links or {})
        self.asked: list[str] = []

    def read_text(self, path: str) -> str | None:
        """Give a text of the table."""
        self.asked.append(path)
        found = self.files.get(posixpath.normpath(path))
        if isinstance(found, OSError):
            raise found
        return found

    def is_folder(self, path: str) -> bool:
        """Whether a file of the table is below."""
        folder = posixpath.normpath(path)
        return folder == "." or any(
            file.startswith(f"{folder}/") for file in self.files
        )

    def real_path(self, path: str) -> str:
        """Pretend that all is below one folder."""
        path = posixpath.normpath(posixpath.join("/home", path))
        for link, target in self.links.items():
            if path == link or path.startswith(f"{link}/"):
                return target + path.removeprefix(link)
        return path

    def describe_type(self, path: str, name: str) -> DescribedType:
        """There are no types here."""
        msg = f"there is no {name} in {path}"
        raise LookupError(msg)

    def describe_module(self, path: str) -> DescribedModule:
        """Give a module of the table."""
        try:
            return self.modules[path]
        except KeyError:
            msg = "it defines no deck"
            raise LookupError(msg) from None


def deck_text(frontmatter: str = "", body: str = "Be kind.") -> str:
    """The text of a PROMPT.md."""
    return f"+++\n{textwrap.dedent(frontmatter).strip()}\n+++\n{body}\n"


def load(
    files: Mapping[str, str | OSError] | str,
    reference: str = "PROMPT.md",
    **more: object,
) -> Loaded:
    """Load a deck of a table of texts, or of one text."""
    table = {"PROMPT.md": files} if isinstance(files, str) else files
    return load_deck(Texts(table), reference, **more)  # type: ignore[arg-type]  # tests choose


def found(loaded: Loaded) -> list[tuple[str, int, int]]:
    """The code and the place of every finding."""
    return [(d.code, d.line, d.column) for d in loaded.diagnostics]


def messages(loaded: Loaded) -> list[str]:
    """The words of every finding."""
    return [_words(d) for d in loaded.diagnostics]


def _words(d: Diagnostic) -> str:
    return f"{d.file}:{d.line}:{d.column} {d.severity} {d.code} {d.message} {d.hint}"
