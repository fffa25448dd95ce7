"""A recording in place of all models, as ``replay:path/to/recording.jsonl``."""

from pathlib import Path

from gambit_actors.errors import RequestError
from gambit_actors.providers.replaying import (
    BadRecording,
    ReplayProvider,
    load_recording,
)

_PREFIX = "replay:"


def recording_named(models: str) -> Path | None:
    """The file of the recording that is named; None if something else is."""
    if not models.startswith(_PREFIX):
        return None
    return Path(models.removeprefix(_PREFIX))


def replayed(file: Path, *, is_timed: bool = False) -> ReplayProvider:
    """Have a recording answer.

    Args:
        file: where it is.
        is_timed: whether events come when they came, or at once.

    Raises:
        RequestError: it is none, or cannot be read.
    """
    try:
        return ReplayProvider(load_recording(file.read_bytes()), is_timed=is_timed)
    except OSError as problem:
        raise RequestError(f"the recording {file}: {problem.strerror}") from problem
    except BadRecording as problem:
        raise RequestError(f"the recording {file}: {problem}") from problem
