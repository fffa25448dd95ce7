"""DK-31 to DK-37: the keys of a frontmatter, one table after the other."""

import pytest

from gambit_actors.deck.model import (
    Deck,
    Guardrails,
    Handler,
    Link,
    ModelParams,
    Reasoning,
)
from gambit_actors.deck.permissions import (
    Permissions,
    RunAccess,
    child_permissions,
    is_within,
    root_permissions,
)
from tests.deck.reading import deck_text, found, load
from tests.deck.rule_decks import bad, folder, good, load_rule, schema_of, words


@pytest.mark.spec("DK-31")
def test_the_keys_at_the_top() -> None:
    """Label, startMode, both schemas, respond and allowEnd end up in the deck."""
    deck = good(31)
    assert (deck.label, deck.start_mode) == ("Library desk", "assistant")
    assert (deck.respond, deck.allow_end) == (True, True)
    assert "name" in schema_of(deck.context_schema)["properties"]
    assert "renewed" in schema_of(deck.response_schema)["properties"]


@pytest.mark.spec("DK-31")
def test_keys_that_are_not_known_are_guessed_at() -> None:
    """A misspelt key is a warning with a guess, a wrong value an error."""
    assert bad(31) == [
        "PROMPT.md:2:1 warning GD010",
        "PROMPT.md:3:13 error GD012",
        "PROMPT.md:4:17 error GD011",
        "PROMPT.md:5:11 error GD011",
        "PROMPT.md:6:12 error GD011",
        "PROMPT.md:7:1 warning GD010",
        "PROMPT.md:8:1 warning GD014",
        "PROMPT.md:11:1 warning GD010",
    ]
    said = words(load_rule(31, "bad"))
    assert "Did you mean label?" in said
    assert "Did you mean assistant?" in said
    assert "move label up, above the first line in brackets" in said


@pytest.mark.spec("DK-32")
def test_model_parameters() -> None:
    """Models stay in their order, and what is additional is passed on as it is."""
    assert good(32).model_params == ModelParams(
        models=("openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "ollama/llama3"),
        temperature=0.2,
        top_p=0.9,
        frequency_penalty=-0.5,
        presence_penalty=1,
        max_tokens=400,
        reasoning=Reasoning(effort="xhigh", summary="auto"),
        additional={
            "seed": 7,
            "top_k": 40,
            "metadata": {"desk": "north", "tags": ["books"]},
        },
    )


@pytest.mark.spec("DK-32")
def test_model_parameters_that_are_wrong() -> None:
    """Other keys, wrong values and what JSON does not have are told one by one."""
    assert bad(32) == [
        "PROMPT.md:3:31 error GD011",
        "PROMPT.md:5:9 error GD012",
        "PROMPT.md:6:14 error GD012",
        "PROMPT.md:7:1 warning GD014",
        "PROMPT.md:8:1 warning GD010",
        "PROMPT.md:9:24 error GD012",
        "PROMPT.md:9:42 error GD012",
        "PROMPT.md:12:15 warning GD016",
        "PROMPT.md:13:9 error GD015",
        "PROMPT.md:14:8 error GD015",
    ]
    said = words(load_rule(32, "bad"))
    assert "put it under [modelParams.additionalParams]" in said
    assert (
        "additionalParams.temperature is overruled by modelParams.temperature" in said
    )


@pytest.mark.spec("DK-32")
def test_a_supported_key_wins_over_an_additional_one() -> None:
    """What is given in both places counts once; what is only additional stays."""
    text = deck_text("""
        [modelParams]
        temperature = 0.2
        [modelParams.additionalParams]
        temperature = 0.9
        top_p = 0.5
    """)
    loaded = load(text)
    assert found(loaded) == [("GD016", 5, 15)]
    assert loaded.usable().model_params == ModelParams(
        temperature=0.2, additional={"top_p": 0.5}
    )


@pytest.mark.spec("DK-33")
def test_guardrails() -> None:
    """The three limits are read, the time in seconds; wrong ones are errors."""
    assert good(33).guardrails == Guardrails(
        max_depth=2, max_passes=6, timeout_seconds=30.0
    )
    assert bad(33) == [
        "PROMPT.md:3:12 error GD012",
        "PROMPT.md:4:13 error GD011",
        "PROMPT.md:5:13 error GD012",
        "PROMPT.md:6:1 warning GD010",
    ]


@pytest.mark.spec("DK-34")
def test_permissions_of_a_deck_and_of_its_references() -> None:
    """All five kinds are read, with paths absolute and seen from the PROMPT.md."""
    deck, home = good(34), folder(34, "good").resolve().as_posix()
    assert deck.permissions == Permissions(
        read=(f"{home}/catalogue", f"{home}/rules"),
        write=(f"{home}/loans",),
        net=("covers.library.example:443",),
        env=("LIBRARY_NAME",),
        run=RunAccess(commands=("grep",), paths=(f"{home}/bin/print_receipt",)),
    )
    assert deck.actions[0].permissions == Permissions(
        read=(f"{home}/catalogue",), run=RunAccess(commands=("grep",))
    )
    assert deck.scenarios[0].permissions == Permissions(env=("LIBRARY_NAME",))
    assert deck.graders[0].permissions == Permissions(read=(f"{home}/rules",))


@pytest.mark.spec("DK-34")
def test_a_child_never_has_more_than_its_parent() -> None:
    """A child that asks for everything gets what parent and reference both allow."""
    deck, home = good(34), folder(34, "good").resolve().as_posix()
    (action,) = deck.actions
    assert isinstance(action.target, Link)
    asked = action.target.deck.permissions
    assert asked == Permissions(read=True, write=True, net=True)
    parent = root_permissions(deck.permissions).effective
    child = child_permissions(
        parent, declaration=asked, reference=action.permissions
    ).effective
    assert child == Permissions(read=(f"{home}/catalogue",))
    unnarrowed = child_permissions(parent, declaration=asked).effective
    assert is_within(unnarrowed, parent)
    assert unnarrowed.net == ("covers.library.example:443",)


@pytest.mark.spec("DK-34")
def test_permissions_that_are_wrong() -> None:
    """Other forms are errors; a reference that asks for more is warned of."""
    assert bad(34) == [
        "PROMPT.md:3:8 error GD060",
        "PROMPT.md:4:8 error GD011",
        "PROMPT.md:5:1 warning GD010",
        "PROMPT.md:8:12 error GD060",
        "PROMPT.md:14:15 warning GD061",
        "PROMPT.md:14:15 warning GD061",
    ]


@pytest.mark.spec("DK-35")
def test_handlers() -> None:
    """Each handler has its deck, label and, but for errors, its times in seconds."""
    handlers = good(35).handlers
    assert handlers.on_busy == Handler(
        link=Link("handlers/busy/PROMPT.md"),
        label="Still looking",
        delay_seconds=1.5,
        repeat_seconds=4.0,
    )
    assert handlers.on_idle == Handler(
        link=Link("handlers/idle/PROMPT.md"),
        label="Still there?",
        delay_seconds=60.0,
        repeat_seconds=120.0,
    )
    assert handlers.on_error == Handler(
        link=Link("handlers/error/PROMPT.md"), label="Sorry"
    )
    assert handlers.on_error.link.deck.prompt.startswith("Say sorry")


@pytest.mark.spec("DK-35")
def test_handlers_that_are_wrong() -> None:
    """A handler needs a path and times that make sense; errors have no times."""
    assert bad(35) == [
        "PROMPT.md:3:11 error GD012",
        "PROMPT.md:4:12 error GD011",
        "PROMPT.md:5:9 error GD011",
        "PROMPT.md:8:1 error GD013",
        "PROMPT.md:12:1 warning GD010",
        "PROMPT.md:15:11 warning GD010",
    ]


@pytest.mark.spec("DK-36")
def test_references_to_scenarios_and_graders() -> None:
    """Both have a path, a label, a description, an id and permissions."""
    deck, home = good(36), folder(36, "good").resolve().as_posix()
    (scenario,), (grader,) = deck.scenarios, deck.graders
    allowed = Permissions(read=(f"{home}/catalogue",))
    assert scenario.link.deck.prompt == "You want one book."
    assert (scenario.label, scenario.id) == ("Hurried reader", "hurried")
    assert scenario.description == "Wants one book and has no time."
    assert scenario.permissions == allowed
    assert grader.link.path == "grader/PROMPT.md"
    assert (grader.label, grader.id) == ("Was helped", "helped")
    assert grader.description == "Whether the reader got the book."
    assert grader.permissions == allowed


@pytest.mark.spec("DK-36")
def test_references_that_are_wrong() -> None:
    """A path is required, and everything else of its type."""
    assert bad(36) == [
        "PROMPT.md:2:1 error GD013",
        "PROMPT.md:7:9 error GD011",
        "PROMPT.md:8:1 warning GD010",
        "PROMPT.md:9:15 error GD011",
        "PROMPT.md:10:15 error GD011",
        "PROMPT.md:12:1 error GD013",
    ]


def files_of(deck: Deck) -> list[str]:
    """The decks and schemas that a deck refers to."""
    links = [reference.link for reference in (*deck.scenarios, *deck.graders)]
    schemas = [deck.context_schema, deck.response_schema]
    schemas += [tool.input_schema for tool in deck.tools]
    return [link.path for link in links] + [s.source for s in schemas if s]


@pytest.mark.spec("DK-37")
def test_references_are_seen_from_the_prompt_they_stand_in() -> None:
    """Decks and schemas are looked up from the folder of the deck that names them."""
    target = good(37).actions[0].target
    assert isinstance(target, Link)
    assert target.path == "rooms/reading/find_book/PROMPT.md"
    assert files_of(target.deck) == [
        "rooms/reading/reader/PROMPT.md",
        "rooms/grader/PROMPT.md",
        "schemas/title.json",
        "rooms/reading/find_book/schemas/shelf.json",
        "rooms/reading/find_book/schemas/shelf.json",
    ]


@pytest.mark.spec("DK-37")
def test_a_path_must_point_at_a_prompt() -> None:
    """A folder, another file, code and nothing at all are told apart."""
    assert bad(37) == [
        "PROMPT.md:5:8 error GD030",
        "PROMPT.md:10:8 error GD031",
        "PROMPT.md:13:8 error GD030",
        "PROMPT.md:16:8 error GD031",
        "PROMPT.md:19:8 error GD032",
    ]
    said = words(load_rule(37, "bad"))
    assert "write ./rooms/find_book/PROMPT.md." in said
    assert "write ./rooms/reader/PROMPT.md." in said
    assert "An action runs code with execute instead of path." in said
