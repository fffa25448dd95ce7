"""What a call gave, as the model reads it and as a log can keep it.

Values come from other people's code and may be anything. What has no JSON form, is
nested too deep or is too long becomes an error that says so: it has happened, and that
has to be on record in some form.
"""

from gambit_actors.actors.compute import words_of
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.run.envelopes import CallSource, Envelope, output_text, refusal
from gambit_actors.run.nesting import TOO_DEEP, is_too_deep

MOST_CHARACTERS = 8 * 2**20
"""How long an output may be. No model reads as much, and a log has to keep it."""


def readable(
    envelope: Envelope, call: FunctionCall, source: CallSource
) -> tuple[Envelope, str]:
    """An envelope with its text, or one that says why the first cannot be read."""
    try:
        text = output_text(envelope, source)
        fault = _fault_of(text)
    except Exception as problem:  # noqa: BLE001  # other people's values, with methods
        fault = f"something that has no JSON form: {words_of(problem)}"
    if fault is None:
        return envelope, text
    refused = refusal(500, "invalid_result", f"{call.name} gave {fault}")
    return refused, output_text(refused, source)


def _fault_of(output: str) -> str | None:
    if len(output) > MOST_CHARACTERS:
        return f"more than {MOST_CHARACTERS} characters"
    return f"something that cannot be used: {TOO_DEEP}" if is_too_deep(output) else None
