"""DK-1 to DK-6: what a deck must have because of how it is invoked."""

import pytest

from gambit_actors.errors import DeckError
from tests.deck.rule_decks import bad, good, load_rule, places, schema_of, words


@pytest.mark.spec("DK-1")
def test_the_same_folder_is_a_deck_in_every_role() -> None:
    """One folder is an action, a scenario, a grader and, started directly, a root."""
    deck = good(1)
    itself = load_rule(1, "good", "reviewer")
    assert itself.diagnostics == ()
    links = [deck.scenarios[0].link, deck.graders[0].link, deck.actions[0].target]
    assert all(getattr(link, "deck", None) == itself.deck for link in links)


@pytest.mark.spec("DK-1")
def test_a_role_comes_from_the_reference() -> None:
    """A deck that is fine as a root is refused as an action; no PROMPT.md, no deck."""
    assert bad(1) == [
        "PROMPT.md:10:8 error GD032",
        "notes/PROMPT.md:2:1 error GD040",
        "notes/PROMPT.md:2:1 error GD040",
        "notes/PROMPT.md:2:1 warning GD043",
    ]
    assert places(load_rule(1, "bad", "notes")) == []
    assert places(load_rule(1, "bad", "drafts")) == ["drafts/PROMPT.md:1:1 error GD001"]


@pytest.mark.spec("DK-2")
def test_only_a_root_may_leave_out_its_schemas() -> None:
    """The root has no schemas; its action, scenario and grader have both."""
    deck = good(2)
    assert (deck.context_schema, deck.response_schema) == (None, None)
    action = deck.actions[0]
    assert schema_of(action.context_schema)["required"] == ["title"]
    assert schema_of(action.response_schema)["required"] == ["shelf"]
    for reference in (*deck.scenarios, *deck.graders):
        assert schema_of(reference.link.deck.context_schema)["type"] == "object"
        assert schema_of(reference.link.deck.response_schema)


@pytest.mark.spec("DK-2")
def test_a_schema_left_out_in_another_role_is_an_error() -> None:
    """Each schema that is not declared is an error in the deck that needs it."""
    assert bad(2) == [
        "actions/find_book/PROMPT.md:1:1 error GD040",
        "actions/find_book/PROMPT.md:1:1 error GD040",
        "graders/was_helped/PROMPT.md:2:1 error GD040",
        "scenarios/hurried_reader/PROMPT.md:2:1 error GD040",
    ]
    loaded = load_rule(2, "bad")
    assert loaded.deck is None
    assert [d.message for d in loaded.diagnostics] == [
        "A deck that is an action must declare a contextSchema.",
        "A deck that is an action must declare a responseSchema.",
        "A deck that is a scenario must declare a contextSchema.",
        "A deck that is a grader must declare a responseSchema.",
    ]


@pytest.mark.spec("DK-3")
def test_a_grader_fits_one_of_the_four_contexts() -> None:
    """Each built-in context will do, by its URI or written out field by field."""
    contexts = [
        schema_of(grader.link.deck.context_schema) for grader in good(3).graders
    ]
    assert len(contexts) == 5
    assert [sorted(context["properties"]) for context in contexts] == [
        ["messageToGrade", "session"],
        ["messageToGrade", "session"],
        ["session"],
        ["session"],
        ["session"],
    ]


@pytest.mark.spec("DK-3")
def test_a_grader_that_changes_a_base_field_is_refused() -> None:
    """A missing field, another type or requiredness is named, at any depth."""
    assert bad(3) == [
        "graders/field_missing/PROMPT.md:3:17 error GD041",
        "graders/other_requiredness/PROMPT.md:3:18 error GD041",
        "graders/other_type/PROMPT.md:3:18 error GD041",
    ]
    loaded = load_rule(3, "bad")
    for difference in (
        "session.messages[]: the field 'name' is missing",
        "score: expected a whole number, is a string",
        "evidence[]: expected a string, is a number",
        "reason: expected to be required, is optional",
        "evidence: expected to be optional, is required",
    ):
        assert difference in words(loaded)
    for grader in loaded.usable().graders:
        with pytest.raises(DeckError):
            _ = grader.link.deck


@pytest.mark.spec("DK-4")
def test_fields_that_a_grader_adds_survive_validation() -> None:
    """What a grader declares beyond the built-in schemas is kept, the rest dropped."""
    grader = good(4).graders[0].link.deck
    assert grader.context_schema is not None
    assert grader.response_schema is not None
    context = {"session": {"messages": [{"role": "user"}], "branch": "north"}}
    assert grader.context_schema.validator.check(context).value == context
    response = {"score": 1, "reason": "ok", "openMatters": ["a card"]}
    checked = grader.response_schema.validator.check(response | {"mood": "good"})
    assert checked.is_valid
    assert checked.value == response


@pytest.mark.spec("DK-4")
def test_a_grader_may_not_add_a_required_field() -> None:
    """A further field that is required is an error, at any depth, in both schemas."""
    assert bad(4) == [
        "grader/PROMPT.md:2:17 error GD041",
        "grader/PROMPT.md:3:18 error GD041",
    ]
    said = words(load_rule(4, "bad"))
    assert "session: extra field 'branch' must be optional." in said
    assert "extra field 'openMatters' must be optional." in said


@pytest.mark.spec("DK-5")
def test_a_scenario_may_answer_in_plain_text() -> None:
    """Without the respond snippet a scenario gives a string; with it, anything."""
    decks = [scenario.link.deck for scenario in good(5).scenarios]
    assert [deck.respond for deck in decks] == [False, False, True]
    types = [schema_of(deck.response_schema)["type"] for deck in decks]
    assert types == ["string", "string", "object"]


@pytest.mark.spec("DK-5")
def test_a_plain_scenario_with_another_schema_is_noticed() -> None:
    """A scenario that answers in plain text and declares an object gets a warning."""
    assert bad(5) == ["scenarios/rating_reader/PROMPT.md:3:18 warning GD042"]
    assert load_rule(5, "bad").usable().scenarios[0].link.is_usable


@pytest.mark.spec("DK-6")
def test_actions_and_graders_respond() -> None:
    """With the respond snippet there is nothing to say about either."""
    deck = good(6)
    action = deck.actions[0].target
    assert getattr(action, "deck", deck).respond
    assert deck.graders[0].link.deck.respond


@pytest.mark.spec("DK-6")
def test_an_action_or_a_grader_that_does_not_respond_is_noticed() -> None:
    """Both get a warning in their own file that says what to add."""
    assert bad(6) == [
        "actions/find_book/PROMPT.md:2:1 warning GD043",
        "graders/was_helped/PROMPT.md:2:1 warning GD043",
    ]
    assert words(load_rule(6, "bad")).count("gambit://snippets/respond.md") == 2
