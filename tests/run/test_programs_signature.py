"""DK-25: what a model is shown of actions, from decks on disk to the request."""

import pytest

from gambit_actors.deck.permissions import NOTHING
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.run.programs import program_from_deck
from tests.deck.rule_decks import good


@pytest.mark.slow
@pytest.mark.spec("DK-25")
def test_the_model_is_shown_the_resolved_schemas_of_actions() -> None:
    """A child deck's contextSchema, or the one beside an execute, is the signature."""
    program = program_from_deck(good(25), name="PROMPT.md", permissions=NOTHING)
    assert program.template.tools == (
        FunctionTool(
            name="find_book",
            description="Find a book by its title.",
            parameters={
                "type": "object",
                "properties": {"title": {"type": "string"}},
            },
        ),
        FunctionTool(
            name="late_fee",
            description="Work out what a late book costs.",
            parameters={
                "type": "object",
                "properties": {"days": {"type": "integer"}},
                "required": ["days"],
            },
        ),
    )
