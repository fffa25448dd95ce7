"""Importing an author's module, and what stands beside it, in a confined process.

The folder of a module may not be listed, so what is in it was looked up before. The
module's text was, too: what runs is what the runtime has seen, and not what the file
has become since.
"""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from gambit_actors.deck.compute import ComputeDeck
from gambit_actors.errors import DeckError


def load_deck_module(file: str, source: bytes, modules: dict[str, str]) -> ComputeDeck:
    """Import a module with ``deck = define_deck(...)``. Runs its code.

    Raises:
        DeckError: it has no such deck.
        BaseException: whatever the module raises.
    """
    # After those of Python itself and before installed packages, as for describing: a
    # deck may well have a calendar.py.
    sys.meta_path.insert(_after_builtin(), _Beside(modules))
    stem = Path(file).stem
    is_taken = stem in sys.stdlib_module_names or stem in sys.modules
    name = f"{stem}_deck" if is_taken else stem
    spec = importlib.util.spec_from_file_location(
        name, file, loader=_Given(name, file, source)
    )
    if spec is None or spec.loader is None:
        msg = f"{file} is not a Python module"
        raise DeckError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Where dataclasses and msgspec look names up.
    spec.loader.exec_module(module)
    deck = getattr(module, "deck", None)
    if not isinstance(deck, ComputeDeck):
        msg = f"{Path(file).name} has no deck made by define_deck"
        raise DeckError(msg)
    return deck


class _Given(SourceFileLoader):
    """Loads a module from a text that is there already."""

    def __init__(self, name: str, file: str, source: bytes) -> None:
        super().__init__(name, file)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Beside:
    """Finds modules by a table of files, where folders may not be listed."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Where a module is; None if it is not in the table."""
        del path, target
        file = self._modules.get(fullname)
        top = fullname.partition(".")[0]
        if file is None or top in sys.stdlib_module_names:
            return None
        is_package = Path(file).name == "__init__.py"
        return importlib.util.spec_from_file_location(
            fullname,
            file,
            submodule_search_locations=[str(Path(file).parent)] if is_package else None,
        )


def _after_builtin() -> int:
    """The place in ``sys.meta_path`` before the finder that reads folders."""
    names = [getattr(finder, "__name__", "") for finder in sys.meta_path]
    return names.index("PathFinder") if "PathFinder" in names else len(names)
