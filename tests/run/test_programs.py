"""What a model is told and offered, and in which order."""

import json

import pytest

from gambit_actors.deck.permissions import EVERYTHING, NOTHING
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import system_message
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonSchemaFormat,
    ReasoningConfig,
)
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.run.calls import ActionCall, plan_call
from gambit_actors.run.programs import (
    Program,
    RuntimeTool,
    is_wrapped,
    program_from_deck,
)
from tests.deck.reading import deck_text, load
from tests.run.playing import (
    ACTION,
    CHILD,
    COUNTED,
    FILES,
    FREE_TOOL,
    RESPOND,
    RESPONDING,
    TOOL,
    WORDED,
    call,
    deck_from,
    offered,
    parameters,
    program,
)

ANY_OBJECT = {"type": "object", "additionalProperties": True}
SAME_NAME = ACTION + '[[tools]]\nname = "weigh"\n'


def taking(schema: str) -> Program:
    """A program with one action, whose deck takes this."""
    return program(ACTION, files={"/count.json": schema})


def answering(schema: str) -> Program:
    """A program whose deck gives this."""
    return program('responseSchema = "/r.json"', files={"/r.json": schema})


def shape_of(made: Program) -> JsonSchemaFormat:
    """The schema that the model is asked to answer in."""
    assert made.template.text is not None
    shape = made.template.text.format
    assert isinstance(shape, JsonSchemaFormat)
    return shape


def test_the_order_of_what_is_offered() -> None:
    """Built-ins come first, then end and respond, actions, tools, and the runtime's."""
    made = program(
        "allowEnd = true\n" + RESPOND + FREE_TOOL + TOOL + ACTION,
        permissions=EVERYTHING,
        runtime_tools=(RuntimeTool(name="clock"),),
    )
    expected = [
        "read_file",
        "list_dir",
        "grep_files",
        "apply_patch",
        "exec",
        "gambit_end",
        "gambit_respond",
        "weigh",
        "anything",
        "look_up",
        "clock",
    ]
    assert list(offered(made)) == expected
    assert list(made.offers) == expected


@pytest.mark.spec("DK-10")
def test_actions_alone() -> None:
    """A deck without tools offers its actions and nothing else."""
    assert list(offered(program(ACTION))) == ["weigh"]


def test_nothing_to_offer() -> None:
    """A deck that only talks sends no list of tools at all."""
    made = program()
    assert made.template.tools is None
    assert made.offers == {}


def test_permissions_are_those_that_were_handed_in() -> None:
    """What a deck declares counts for nothing here; what it was granted does."""
    asking = "[permissions]\nread = true\n"
    assert list(offered(program(asking, permissions=NOTHING))) == []
    assert "read_file" in offered(program(permissions=EVERYTHING))


@pytest.mark.spec("DK-7")
def test_an_action_hides_a_tool_of_its_name() -> None:
    """Of the two the loader warns, and only the action is offered and called."""
    loaded = load({"PROMPT.md": deck_text(SAME_NAME), **FILES})
    assert [d.severity for d in loaded.diagnostics] == ["warning"]
    made = program_from_deck(loaded.usable(), name="PROMPT.md", permissions=NOTHING)
    tools = [to_builtins(tool) for tool in made.template.tools or ()]
    assert [(tool["name"], tool["description"]) for tool in tools] == [
        ("weigh", "Weigh it.")
    ]
    assert isinstance(plan_call(made, call("weigh", '{"n":1}')), ActionCall)


@pytest.mark.parametrize("owner", [ACTION, '[[tools]]\nname = "weigh"\n'])
def test_a_deck_hides_a_tool_of_the_runtime(owner: str) -> None:
    """A name that the deck has is the deck's, whatever the runtime adds."""
    added = RuntimeTool(name="weigh", description="Another.")
    made = program(owner, runtime_tools=(added,))
    assert list(offered(made)) == ["weigh"]
    assert made.offers["weigh"] is not added


def test_a_built_in_tool_hides_a_tool_of_the_runtime() -> None:
    """What the runtime does itself cannot be taken over by an added tool."""
    added = RuntimeTool(name="exec")
    made = program(permissions=EVERYTHING, runtime_tools=(added,))
    assert made.offers["exec"] is not added


@pytest.mark.parametrize("name", ["gambit_context", "gambit_init", "gambit_complete"])
def test_what_only_carries_is_never_offered(name: str) -> None:
    """A model cannot call what carries context in or an ending out."""
    made = program("allowEnd = true\n" + RESPOND + ACTION, permissions=EVERYTHING)
    assert name not in made.offers


@pytest.mark.parametrize(
    ("frontmatter", "expected"),
    [
        ("", []),
        ("allowEnd = true", ["gambit_end"]),
        ("respond = true", ["gambit_respond"]),
        ("respond = true\nallowEnd = true", ["gambit_end", "gambit_respond"]),
    ],
)
def test_end_and_respond_are_offered_where_wanted(
    frontmatter: str, expected: list[str]
) -> None:
    """Each is offered if the deck says so, and not otherwise."""
    assert list(offered(program(frontmatter))) == expected


# --- what tools look like ----------------------------------------------------


@pytest.mark.spec("DK-25")
def test_an_action_is_shown_with_what_its_deck_takes() -> None:
    """The tool's parameters are the context schema of the child."""
    made = program(ACTION)
    schema = made.deck.actions[0].context_schema.schema
    assert offered(made)["weigh"] == FunctionTool(
        name="weigh", description="Weigh it.", parameters=schema
    )


@pytest.mark.spec("DK-25")
def test_an_action_is_shown_with_what_its_module_takes() -> None:
    """For code the parameters are the schema that the module declares."""
    takes: dict[str, JSONValue] = {
        "type": "object",
        "properties": {"q": {"type": "string"}},
    }
    deck = deck_from(
        '[[actions]]\nname = "run_it"\ndescription = "Run."\nexecute = "/m.py"',
        files={"/m.py": ""},
        modules={
            "/m.py": DescribedModule(
                context_schema=takes, response_schema={"type": "string"}
            )
        },
    )
    made = program_from_deck(deck, name="PROMPT.md", permissions=NOTHING)
    assert parameters(made, "run_it") == takes


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "string"}',
        '{"type": "array", "items": {"type": "integer"}}',
        '{"type": ["array", "null"]}',
        '{"anyOf": [{"type": "number"}, {"type": "string"}]}',
    ],
)
def test_what_is_not_an_object_is_wrapped_in_one(schema: str) -> None:
    """Models can only give objects, so anything else goes under a key of its own."""
    made = taking(schema)
    action = made.deck.actions[0]
    assert is_wrapped(action.context_schema.schema)
    assert parameters(made, "weigh") == {
        "type": "object",
        "properties": {"input": action.context_schema.schema},
        "required": ["input"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "object"}',
        '{"properties": {"a": {}}}',
        '{"anyOf": [{"type": "object"}, {"properties": {"a": {}}}]}',
        '{"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}',
    ],
)
def test_what_can_only_be_an_object_is_shown_as_it_is(schema: str) -> None:
    """However a schema says that it is an object, it is not wrapped."""
    made = taking(schema)
    action = made.deck.actions[0]
    assert not is_wrapped(action.context_schema.schema)
    assert parameters(made, "weigh") == action.context_schema.schema


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": ["object", "null"]}',
        '{"anyOf": [{"type": "object"}, {"type": "null"}]}',
    ],
)
def test_what_may_be_an_object_is_asked_for_as_one(schema: str) -> None:
    """Where objects are among the choices, an object is what the model gives."""
    made = taking(schema)
    assert parameters(made, "weigh") == json.loads(schema) | {"type": "object"}
    assert parameters(taking("{}"), "weigh") == {
        "type": "object",
        "additionalProperties": True,
    }


def test_a_tool_is_shown_with_its_input_schema() -> None:
    """The parameters of a tool are its inputSchema; without one, any object."""
    made = program(TOOL + FREE_TOOL)
    schema = made.deck.tools[0].input_schema
    assert schema is not None
    assert parameters(made, "look_up") == schema.schema
    assert parameters(made, "anything") == ANY_OBJECT
    assert offered(made)["anything"].description is None


def test_a_tool_of_the_runtime_is_shown_with_its_parameters() -> None:
    """What the runtime says its tool takes is shown; if it says nothing, any object."""
    takes: dict[str, JSONValue] = {"type": "object", "properties": {"zone": {}}}
    tools = (RuntimeTool(name="clock", parameters=takes), RuntimeTool(name="dice"))
    made = program(runtime_tools=tools)
    assert parameters(made, "clock") == takes
    assert parameters(made, "dice") == ANY_OBJECT


def test_respond_is_shown_with_what_the_deck_gives() -> None:
    """The payload of gambit_respond has the deck's response schema."""
    made = program(RESPOND + COUNTED)
    assert made.deck.response_schema is not None
    shown = parameters(made, "gambit_respond")
    assert shown["properties"]["payload"] == made.deck.response_schema.schema


# --- what is sent ------------------------------------------------------------


def test_the_body_opens_the_conversation() -> None:
    """The prompt, snippets and all, is a system message."""
    files = {"/s.md": "Be brief."}
    deck = deck_from("", files=files, body="Be kind. ![s](/s.md)")
    made = program_from_deck(deck, name="PROMPT.md", permissions=NOTHING)
    assert "Be brief." in deck.prompt
    assert made.opening == system_message(deck.prompt)


def test_no_body_no_opening() -> None:
    """A deck without words does not send an empty message."""
    deck = load(deck_text("", "")).usable()
    made = program_from_deck(deck, name="PROMPT.md", permissions=NOTHING)
    assert made.opening is None


def test_a_request_without_parameters() -> None:
    """A deck that asks for nothing leaves all to the provider, and keeps no state."""
    assert program().template == CreateResponse(stream=True, store=False)


def test_all_parameters_are_sent() -> None:
    """Every parameter of a deck is in its request, under the name the wire has."""
    made = program("""
        [modelParams]
        model = "m"
        temperature = 0.5
        top_p = 0.9
        frequency_penalty = 0.1
        presence_penalty = -0.1
        max_tokens = 100
        reasoning = { effort = "low", summary = "auto" }
        [modelParams.additionalParams]
        top_k = 3
        """)
    assert made.template == CreateResponse(
        temperature=0.5,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=-0.1,
        max_output_tokens=100,
        reasoning=ReasoningConfig(effort="low", summary="auto"),
        stream=True,
        store=False,
        extra=made.template.extra,
    )
    assert made.template.extra == {"top_k": 3}


@pytest.mark.parametrize(("most", "sent"), [(1, 16), (15, 16), (16, 16), (17, 17)])
def test_the_wire_has_a_least_number_of_tokens(most: int, sent: int) -> None:
    """A limit lower than the wire allows is sent as the lowest allowed."""
    made = program(f"[modelParams]\nmax_tokens = {most}")
    assert made.template.max_output_tokens == sent


@pytest.mark.parametrize("key", ["stream", "store"])
def test_additional_parameters_do_not_overrule_ours(key: str) -> None:
    """What the request says itself cannot be said otherwise on the side."""
    made = program(f'[modelParams.additionalParams]\n{key} = "mine"')
    assert to_builtins(made.template)[key] in (True, False)


# --- the form of the answer --------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "string"}',
        '{"type": "string", "minLength": 1}',
        '{"enum": ["yes", "no"]}',
        '{"const": "yes"}',
        '{"anyOf": [{"const": "yes"}, {"type": "string"}]}',
    ],
)
def test_a_string_is_answered_in_words(schema: str) -> None:
    """If only a string will do, the model answers in plain text."""
    made = answering(schema)
    assert made.answers_in_text
    assert made.template.text is None


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "object"}',
        '{"type": "integer"}',
        '{"type": "array"}',
        '{"type": ["string", "null"]}',
        '{"enum": ["yes", 1]}',
    ],
)
def test_anything_else_is_answered_in_json(schema: str) -> None:
    """If something else than a string will do, the model is shown the schema."""
    made = answering(schema)
    assert not made.answers_in_text
    assert made.deck.response_schema is not None
    assert shape_of(made).schema == made.deck.response_schema.schema
    assert shape_of(made).strict is False


def test_no_schema_no_form() -> None:
    """A deck that does not say what it gives is answered in words."""
    made = program()
    assert made.answers_in_text
    assert made.template.text is None


@pytest.mark.parametrize("schema", [COUNTED, WORDED])
def test_a_responding_deck_asks_for_no_form(schema: str) -> None:
    """The result comes in a call, so its text may be anything."""
    assert program(RESPOND + schema).template.text is None


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Count Apples!", "count_apples"),
        ("__x__", "x"),
        ("a-b.c", "a_b_c"),
        ("日本", "answer"),
        ("é", "answer"),
        ("x" * 100, "x" * 64),
    ],
)
def test_the_form_is_named_after_the_label(label: str, name: str) -> None:
    """The name is the label in the letters that a name may have, and not too long."""
    assert shape_of(program(f'label = "{label}"\n{COUNTED}')).name == name


def test_the_form_of_a_deck_without_a_label() -> None:
    """It is named after the folder."""
    deck = deck_from(COUNTED, path="/decks/Count-it/PROMPT.md")
    made = program_from_deck(deck, name="PROMPT.md", permissions=NOTHING)
    assert shape_of(made).name == "count_it"


def test_a_child_is_a_program_of_its_own() -> None:
    """A deck that is an action of another is asked like any deck."""
    assert RESPONDING in CHILD
    deck = load({"PROMPT.md": CHILD, **FILES}).usable()
    made = program_from_deck(deck, name="child", permissions=NOTHING)
    assert list(offered(made)) == ["gambit_respond"]
    assert made.name == "child"
