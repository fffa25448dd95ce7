"""What tests of logs share: a small run, and its log in bytes."""

from collections.abc import Sequence

from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.items import FunctionCall, UnknownItem, user_message
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    ItemAdded,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.store.log_lines import LineWriter

START = RunStarted(run_id="run_1", deck="desk")
ASKED = ItemAdded(item=user_message("Where is it? 😀"), source="user")
CALL = FunctionCall(call_id="c", name="look", arguments='{"a":"}\\n"}')
NOTE = UnknownItem(type_name="acme:note", extra=Extra({"crc": {"a": 1, "crc": "x"}}))
STARTED = CallStarted(call_id="c", name="look", kind="tool")
ENDED = TurnEnded(status="completed", result={"a": None}, text="There.")
OVER = RunEnded(status="completed", turns=1)

# A run as an actor writes it down, batch by batch. The store puts START in front.
BATCHES: list[list[Entry]] = [
    [TurnStarted(), ASKED],
    [
        ModelAnswered(model="m", status="completed"),
        ItemAdded(item=CALL, source="model"),
        ItemAdded(item=NOTE, source="model"),
        STARTED,
    ],
    [CallEnded(call_id="c", output="There.")],
    [ENDED],
    [OVER],
]
ENTRIES: list[Entry] = [START, *(entry for batch in BATCHES for entry in batch)]


def batches_of(run: Sequence[Sequence[Entry]] = BATCHES) -> list[list[Entry]]:
    """The batches as they reach the file: the first begins with the start."""
    return [[START, *run[0]], *map(list, run[1:])] if run else []


def log_of(batches: Sequence[Sequence[Entry]], *, writer: str = "w") -> list[bytes]:
    """The bytes of each batch."""
    lines = LineWriter(writer)
    return [lines.batch(batch, 1.5 + n) for n, batch in enumerate(batches)]


def prefix_before(cut: int, batches: Sequence[Sequence[Entry]]) -> list[Entry]:
    """The entries of the batches that are whole in that many bytes.

    A batch is whole without the line break at its end.
    """
    entries: list[Entry] = []
    end = 0
    for batch, data in zip(batches, log_of(batches), strict=True):
        end += len(data)
        if end - 1 > cut:
            break
        entries += batch
    return entries
