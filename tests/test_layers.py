"""Imports follow the layers, and the core stays free of I/O and clocks.

The contracts themselves are in pyproject.toml; here they are run, and shown to be
able to fail. What an import graph cannot show (a call to the builtin ``open``, a
module imported by its name in a string) is read from the syntax tree.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gambit_actors"

# Packages that turn values into values; pyproject.toml has them, too.
PURE = [
    "deck",
    "errors.py",
    "openresponses",
    "providers/dialects",
    "run",
    "schema",
    "version.py",
]

# Builtins that reach outside the program, or import behind the linter's back.
IMPURE_CALLS = frozenset(
    {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}
)


def impure_calls(source: str) -> list[str]:
    """List the calls in a module that reach outside it, as ``line: name``."""
    return [
        f"{node.lineno}: {node.func.id}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in IMPURE_CALLS
    ]


def dynamic_imports(source: str) -> list[str]:
    """List the places that use ``importlib``, as ``line: name``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                continue
        found += [
            f"{node.lineno}: {name}"
            for name in modules
            if name.partition(".")[0] == "importlib"
        ]
    return found


def pure_sources() -> list[Path]:
    """Find the modules of the pure packages that exist."""
    paths = [PACKAGE / name for name in PURE]
    return sorted(
        source
        for path in paths
        for source in ([path] if path.is_file() else path.rglob("*.py"))
    )


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the ``gambit_actors`` found in a folder against our contracts."""
    command = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [
            sys.executable,
            "-c",
            command,
            "--no-cache",
            "--config",
            str(ROOT / "pyproject.toml"),
        ],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def make_package(folder: Path, sources: dict[str, str]) -> None:
    """Write a ``gambit_actors`` with the layers that exist and these modules."""
    packages = ["actors", "cli", "deck", "openresponses", "providers"]
    packages += ["providers/dialects", "run", "schema", "settings", "store"]
    packages += ["testing", "trace", "wiring"]
    layers = {f"{name}/__init__.py": "" for name in packages}
    layers |= {"testing/dialects.py": "", "wiring/dialects.py": ""}
    layers |= {"errors.py": "", "version.py": ""}
    for name, source in ({"__init__.py": ""} | layers | sources).items():
        path = folder / "gambit_actors" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(source, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.spec("PA-1")
def test_contracts_are_kept() -> None:
    """The package keeps every import contract of pyproject.toml."""
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "sources",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"cli/run.py": "import gambit_actors.errors, os"}, id="downward"),
        pytest.param({"providers/http.py": "import httpx, httpx2"}, id="transport"),
        pytest.param(
            {
                "providers/http.py": "import httpx",
                "cli/run.py": "import gambit_actors.providers.http",
            },
            id="transport-used",
        ),
    ],
)
def test_contracts_accept_good_imports(tmp_path: Path, sources: dict[str, str]) -> None:
    """What the layers allow passes, so a refusal below means what it says."""
    make_package(tmp_path, sources)
    done = lint_imports(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sources", "broken"),
    [
        pytest.param(
            {"errors.py": "import gambit_actors.openresponses"},
            "Imports point down the layers",
            id="upward",
        ),
        pytest.param(
            {
                "actors/__init__.py": "import gambit_actors.store",
                "store/__init__.py": "",
            },
            "Imports point down the layers",
            id="sideways",
        ),
        pytest.param(
            {"helpers.py": ""}, "Imports point down the layers", id="no-layer"
        ),
        pytest.param(
            {"openresponses/sse.py": "def f():\n    import time"},
            "The core does no I/O",
            id="clock",
        ),
        pytest.param(
            {"openresponses/sse.py": "import os.path"},
            "The core does no I/O",
            id="submodule",
        ),
        pytest.param(
            {
                "openresponses/sse.py": "import gambit_actors.errors",
                "errors.py": "import socket",
            },
            "The core does no I/O",
            id="indirect",
        ),
        pytest.param(
            {"cli/run.py": "from httpx import get"},
            "One module imports the HTTP client",
            id="http",
        ),
        pytest.param(
            {"actors/run.py": "import gambit_actors.providers.dialects"},
            "What model servers speak ends at the provider",
            id="dialect-in-an-actor",
        ),
        pytest.param(
            {"cli/run.py": "def f():\n    import gambit_actors.providers.dialects"},
            "What model servers speak ends at the provider",
            id="dialect-in-a-command",
        ),
    ],
)
def test_contracts_refuse_bad_imports(
    tmp_path: Path, sources: dict[str, str], broken: str
) -> None:
    """Each contract breaks on an import it forbids, direct, late or indirect."""
    make_package(tmp_path, sources)
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    kept = [line for line in done.stdout.splitlines() if line.endswith("KEPT")]
    assert f"{broken}" in done.stdout
    assert not any(line.startswith(broken) for line in kept)


def test_pure_modules_reach_nothing_outside() -> None:
    """No pure module opens, prints, evaluates or imports by name."""
    sources = pure_sources()
    assert sources, "no pure modules found: has the package moved?"
    found = {
        str(path.relative_to(ROOT)): faults
        for path in sources
        if (text := path.read_text(encoding="utf-8"))
        and (faults := impure_calls(text) + dynamic_imports(text))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("x = 1\nwith open('f') as f:\n    pass", ["2: open"]),
        ("def f():\n    print('hi')", ["2: print"]),
        ("t = __import__('time')", ["1: __import__"]),
        ("path.open()\nreopen()", []),
    ],
)
def test_impure_calls_are_seen(source: str, faults: list[str]) -> None:
    """The reader finds forbidden builtins anywhere, and only those."""
    assert impure_calls(source) == faults


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("import re, importlib", ["1: importlib"]),
        ("from importlib.resources import files", ["1: importlib.resources"]),
        ("import re\nfrom . import importlib_like", []),
    ],
)
def test_dynamic_imports_are_seen(source: str, faults: list[str]) -> None:
    """The reader finds importlib in every spelling of an import."""
    assert dynamic_imports(source) == faults
