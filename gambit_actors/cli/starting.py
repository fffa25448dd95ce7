"""The way into ``gambit``: from its first moment on, a signal ends it in one line.

Quick to import, as nothing that is imported before `main` is begun can be ended so.
What a signal does while decks are at work is in `gambit_actors.cli.stopping`.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
BY_CTRL_C = "Stopped by Ctrl-C."
_BY_SIGTERM = "Stopped by SIGTERM."


def main() -> None:
    """Do what the command line asks for, and end with its exit code."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
    try:
        # Late: it takes most of the time until a command begins.
        from gambit_actors.cli.main import main as gambit

        gambit(prog_name="gambit")
    except KeyboardInterrupt:
        _say(BY_CTRL_C)
        sys.exit(INTERRUPTED)
    finally:
        # All is done, and the interpreter has nothing to say while it goes.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, leave)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """End the process in order, wherever it is."""
    _say(_BY_SIGTERM)
    sys.exit(TERMINATED)


def leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End the process at once."""
    os._exit(128 + number)


def _say(words: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # Nobody reads it any more.
            # A terminal shows what was typed, ^C, at the beginning of the line.
            print("\n" * sys.stderr.isatty() + words, file=sys.stderr, flush=True)
