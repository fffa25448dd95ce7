"""What a turn begins with: written down, then told."""

import msgspec

from gambit_actors.actors.children import Asker
from gambit_actors.actors.mailboxes import Turn
from gambit_actors.actors.trees import new_id
from gambit_actors.run.openings import opening_entries
from gambit_actors.run.secrets import secrets_in
from gambit_actors.run.synthetic import context_items


async def open_turn(asker: Asker, turn: Turn) -> None:
    """Write what a turn begins with; prompt and context only the first time."""
    context = None
    if not asker.state.turns and turn.context is not msgspec.UNSET:
        schema = asker.program.deck.context_schema
        asker.tree.secrets.update(secrets_in(turn.context, schema))
        context = context_items(new_id("call"), turn.context)
    entries = opening_entries(
        asker.program,
        asker.state,
        context,
        turn.message,
        max_passes=asker.tree.limits.max_passes,
    )
    await asker.append(entries)
    if context is not None:
        call, output = context
        asker.teller.internal_call(call, str(output.output))
    if turn.message is not None:
        asker.teller.user_message(turn.message)
