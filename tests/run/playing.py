"""What the tests of runs share: programs made of texts, and short words for entries."""

from collections.abc import Mapping

from gambit_actors.deck.loader import load_deck
from gambit_actors.deck.model import Deck
from gambit_actors.deck.permissions import NOTHING, Permissions
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.run.entries import Entry, ItemAdded, ModelAnswered, TurnStarted
from gambit_actors.run.programs import Program, RuntimeTool, program_from_deck
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.run.steps import CallModel, Finish, RunTools, Step, next_step
from tests.deck.reading import Texts, deck_text

TEXT = '{"type": "string"}'
COUNT = (
    '{"type": "object", "properties": {"n": {"type": "integer"},'
    ' "unit": {"type": "string", "default": "kg"}}, "required": ["n"]}'
)
RESPONDING = "![respond](gambit://snippets/respond.md)"
CHILD = deck_text(
    'contextSchema = "/count.json"\nresponseSchema = "/text.json"\nrespond = true',
    RESPONDING,
)
FILES = {"/count.json": COUNT, "/text.json": TEXT, "/child/PROMPT.md": CHILD}
ACTION = """
[[actions]]
name = "weigh"
description = "Weigh it."
path = "/child/PROMPT.md"
"""
TOOL = """
[[tools]]
name = "look_up"
description = "Look it up."
inputSchema = "/count.json"
"""
FREE_TOOL = """
[[tools]]
name = "anything"
"""
RESPOND = "respond = true\n"
COUNTED = 'responseSchema = "/count.json"\n'
WORDED = 'responseSchema = "/text.json"\n'


def deck_from(
    frontmatter: str,
    *,
    files: Mapping[str, str] | None = None,
    modules: Mapping[str, DescribedModule] | None = None,
    body: str = "Be kind.",
    path: str = "PROMPT.md",
) -> Deck:
    """A deck of a frontmatter, with a few schemas and a child at hand."""
    table = {path: deck_text(frontmatter, body), **FILES, **(files or {})}
    return load_deck(Texts(table, modules=modules), path).usable()


def program(
    frontmatter: str = "",
    *,
    files: Mapping[str, str] | None = None,
    permissions: Permissions = NOTHING,
    runtime_tools: tuple[RuntimeTool, ...] = (),
) -> Program:
    """What a model sees of such a deck."""
    return program_from_deck(
        deck_from(frontmatter, files=files),
        name="PROMPT.md",
        permissions=permissions,
        runtime_tools=runtime_tools,
    )


def offered(made: Program) -> dict[str, FunctionTool]:
    """The tools of a request, by name and in order."""
    tools = made.template.tools or ()
    return {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}


def parameters(made: Program, name: str) -> dict[str, JSONValue]:
    """What a tool takes, as the model is shown it."""
    return offered(made)[name].parameters or {}


def call(name: str, arguments: str = "{}", call_id: str = "c1") -> FunctionCall:
    """A call that a model makes."""
    return FunctionCall(call_id=call_id, name=name, arguments=arguments)


def called(name: str, arguments: str = "{}", call_id: str = "c1") -> ItemAdded:
    """The entry of a call that a model made."""
    return ItemAdded(item=call(name, arguments, call_id), source="model")


def output(text: str = "{}", call_id: str = "c1") -> ItemAdded:
    """The entry of what a call gave."""
    item = FunctionCallOutput(call_id=call_id, output=text)
    return ItemAdded(item=item, source="tool")


def accepted(name: str, arguments: str, call_id: str = "c1") -> tuple[Entry, Entry]:
    """A result or an end that was taken: its output is what was given."""
    return called(name, arguments, call_id), output(arguments, call_id)


def said(text: str) -> ItemAdded:
    """The entry of words of the model's."""
    return ItemAdded(item=assistant_message(text), source="model")


def asked(text: str = "Hello?") -> ItemAdded:
    """The entry of words of the user's."""
    return ItemAdded(item=user_message(text), source="user")


def complaint(text: str = "Again.") -> ItemAdded:
    """The entry of the runtime's asking for a better answer."""
    return ItemAdded(item=user_message(text), source="runtime")


def answered(status: str = "completed", reason: str | None = None) -> ModelAnswered:
    """The entry of a model call's end."""
    return ModelAnswered(model="m", status=status, reason=reason)


def state_of(*entries: Entry) -> RunState:
    """The state in the first turn, after these entries."""
    return state_from_entries([TurnStarted(), *entries])


def step_after(made: Program, *entries: Entry, max_passes: int = 10) -> Step:
    """What is next in the first turn, after these entries."""
    return next_step(made, state_of(*entries), max_passes=max_passes)


def finish_after(made: Program, *entries: Entry, max_passes: int = 10) -> Finish:
    """The end of the turn, which must be next."""
    step = step_after(made, *entries, max_passes=max_passes)
    assert isinstance(step, Finish)
    return step


def request_after(made: Program, *entries: Entry, max_passes: int = 10) -> CallModel:
    """The model call that must be next."""
    step = step_after(made, *entries, max_passes=max_passes)
    assert isinstance(step, CallModel)
    return step


def calls_after(made: Program, *entries: Entry) -> tuple[FunctionCall, ...]:
    """The calls that must be carried out next."""
    step = step_after(made, *entries)
    assert isinstance(step, RunTools)
    return step.calls


def failure_of(step: Finish) -> tuple[str, str]:
    """The code and the words of a turn that failed."""
    assert step.ended.status == "failed"
    assert step.ended.failure is not None
    return step.ended.failure.code, step.ended.failure.message
