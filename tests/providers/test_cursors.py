"""What servers have of conversations that they keep."""

import msgspec
import pytest

from gambit_actors.openresponses.followup import in_input_form
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Reasoning,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.parts import ReasoningText
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.cursors import Cursors
from gambit_actors.run.ports import ModelContext

CALL = FunctionCall(call_id="c1", name="crm", arguments="{}", id="fc_1")
OUTPUT = FunctionCallOutput(call_id="c1", output="ok")
ASKED = CreateResponse(model="m", input=(user_message("Hi."),))


def context(run_id: str = "run-1") -> ModelContext:
    """Somebody who asks."""
    return ModelContext(run_id=run_id, deck="PROMPT.md", turn=1, pass_number=1)


def response(*output: Item, status: str = "completed") -> Response:
    """An answer."""
    return Response(id="resp_1", status=status, output=output)


def following(*items: Item) -> CreateResponse:
    """The request after the first, with these items behind what was asked."""
    return msgspec.structs.replace(ASKED, input=(*(ASKED.input or ()), *items))


@pytest.mark.spec("PA-7")
def test_what_the_server_has_is_not_sent_again() -> None:
    """After an answer only what is new goes out, with the id of that answer."""
    cursors = Cursors()
    cursors.remember(ASKED, context(), response(CALL))

    shorter = cursors.shortened(following(CALL, OUTPUT), context())

    assert shorter is not None
    assert shorter.input == (OUTPUT,)
    assert shorter.previous_response_id == "resp_1"


@pytest.mark.spec("PA-7")
def test_a_fresh_run_has_no_cursor() -> None:
    """What one run has told a server counts for no other run, and no other model."""
    cursors = Cursors()
    cursors.remember(ASKED, context(), response(CALL))
    other_model = msgspec.structs.replace(following(CALL, OUTPUT), model="n")

    assert cursors.shortened(following(CALL, OUTPUT), context("run-2")) is None
    assert cursors.shortened(other_model, context()) is None


def test_reasoning_counts_in_the_form_in_which_it_goes_back() -> None:
    """Raw reasoning is never sent back, so its absence is no difference."""
    thought = Reasoning(id="rs_1", content=(ReasoningText(text="Hm."),))
    cursors = Cursors()
    cursors.remember(ASKED, context(), response(thought, CALL))

    shorter = cursors.shortened(
        following(in_input_form(thought), CALL, OUTPUT), context()
    )

    assert shorter is not None
    assert shorter.input == (OUTPUT,)


@pytest.mark.parametrize(
    "items",
    [
        pytest.param((), id="nothing new"),
        pytest.param((CALL,), id="no more than it has"),
        pytest.param((OUTPUT,), id="without the call"),
        pytest.param(
            (msgspec.structs.replace(CALL, call_id="c1-2"), OUTPUT), id="another id"
        ),
        pytest.param((assistant_message("No."), OUTPUT), id="another answer"),
    ],
)
def test_a_conversation_that_is_another_is_sent_whole(items: tuple[Item, ...]) -> None:
    """If the conversation is not what the server has, all of it is sent."""
    cursors = Cursors()
    cursors.remember(ASKED, context(), response(CALL))

    assert cursors.shortened(following(*items), context()) is None


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_an_answer_that_is_not_whole_is_no_place_to_go_on_from(status: str) -> None:
    """What was cut is kept in another form than the server has, so it is sent."""
    cursors = Cursors()
    cursors.remember(ASKED, context(), response(CALL))
    cursors.remember(following(CALL, OUTPUT), context(), response(status=status))

    assert cursors.shortened(following(CALL, OUTPUT, CALL), context()) is None


def test_the_run_that_asked_least_lately_is_forgotten() -> None:
    """Memory is bounded: a run that is forgotten sends its conversation whole."""
    cursors = Cursors(most=2)
    for name in ("run-1", "run-2", "run-1", "run-3"):
        cursors.remember(ASKED, context(name), response(CALL))

    known = [
        name
        for name in ("run-1", "run-2", "run-3")
        if cursors.shortened(following(CALL, OUTPUT), context(name)) is not None
    ]

    assert known == ["run-1", "run-3"]
