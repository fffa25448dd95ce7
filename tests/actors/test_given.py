"""What a turn is given: a context that fits, once, and an empty one if none is said."""

import pytest

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripts import Reply
from tests.actors.playing import ANYTHING, outputs_of, root, stage

HELLO = [Reply(text="Hello.", times=0)]
COUNT = '{"type": "object", "required": ["n"]}'
FREE = '{"type": "object"}'


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ('{"type": "string"}', '""'),
        ('{"type": "string", "maxLength": 0}', '""'),
        (ANYTHING, "{}"),
        ("{}", "{}"),
        ('{"properties": {"unit": {"default": "kg"}}}', '{"unit":"kg"}'),
    ],
)
async def test_where_no_context_is_given_an_empty_one_is_tried(
    schema: str, given: str
) -> None:
    """An object first, then a text; the deck gets the one that its schema takes."""
    files = {"PROMPT.md": root('contextSchema = "s.json"'), "s.json": schema}
    async with stage(files, HELLO) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    assert outputs_of(result.items)["gambit_context"] == [given]


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ('{"type": "string", "minLength": 1}', None),
        ('{"type": "string"}', {}),
        (FREE, ""),
        (COUNT, None),
    ],
)
async def test_what_does_not_fit_is_refused(schema: str, given: JSONValue) -> None:
    """Neither empty value is put in the place of one that was given, or is needed."""
    files = {"PROMPT.md": root('contextSchema = "s.json"'), "s.json": schema}
    context = {} if given is None else {"context": given}
    async with stage(files, HELLO) as on:
        with pytest.raises(RequestError, match="does not fit"):
            await on.runtime.run("PROMPT.md", message="Hi.", **context)
        assert on.store.logs == {}


async def test_a_context_is_given_with_the_first_message_alone() -> None:
    """Later it is refused, and not needed; the conversation has it once."""
    files = {"PROMPT.md": root('contextSchema = "s.json"'), "s.json": COUNT}
    async with (
        stage(files, HELLO) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        await session.send("Hi.", context={"n": 1})
        with pytest.raises(RequestError, match="only be given with the first message"):
            await session.send("Again.", context={"n": 2})
        result = await session.send("Again.")
    assert result.status == "completed"
    assert outputs_of(result.items)["gambit_context"] == ['{"n":1}']
