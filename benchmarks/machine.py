"""What the numbers were measured on: a number without its machine says nothing."""

import datetime as dt
import os
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import msgspec


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine and what is installed on it. No host name, no paths."""

    date: str
    cpu: str
    cores: int
    system: str
    python: str
    load: str
    libraries: dict[str, str]


def this_machine(libraries: Iterable[str]) -> Machine:
    """The machine this runs on, with the versions of the libraries that matter."""
    return Machine(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        cpu=_cpu_model(),
        cores=os.cpu_count() or 0,
        system=f"{platform.system()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=_load(),
        libraries={name: _version(name) for name in libraries},
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    return models[0].strip() if models else platform.processor() or "unknown"


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except (AttributeError, OSError):  # not on every system
        return "unknown"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
