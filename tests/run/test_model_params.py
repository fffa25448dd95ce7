"""Settings of models: how they are asked for, and whose come first."""

import msgspec

from gambit_actors.deck.model import ModelParams
from gambit_actors.deck.model import Reasoning as ReasoningParams
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.requests import CreateResponse, ReasoningConfig
from gambit_actors.run.model_params import request_of_params, with_params_under


def test_settings_become_a_request_of_nothing_else() -> None:
    """Every setting of a deck has its place in a request."""
    params = ModelParams(
        models=("a",),
        temperature=0.5,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        max_tokens=100,
        reasoning=ReasoningParams(effort="low", summary="auto"),
        additional={"seed": 7},
    )

    assert request_of_params(params) == CreateResponse(
        temperature=0.5,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        max_output_tokens=100,
        reasoning=ReasoningConfig(effort="low", summary="auto"),
        extra=Extra({"seed": 7}),
    )


def test_fewer_tokens_than_the_wire_allows_are_rounded_up() -> None:
    """The standard takes no limit below sixteen tokens."""
    assert request_of_params(ModelParams(max_tokens=1)).max_output_tokens == 16


def test_what_a_request_asks_for_wins() -> None:
    """Settings behind a name count only where the request asks for nothing."""
    request = CreateResponse(temperature=0.0, extra=Extra({"seed": 1, "own": True}))
    under = CreateResponse(
        temperature=1.0, top_p=0.5, extra=Extra({"seed": 2, "other": True})
    )

    merged = with_params_under(request, under)

    assert (merged.temperature, merged.top_p) == (0.0, 0.5)
    assert merged.extra == {"seed": 1, "own": True, "other": True}


def test_without_settings_a_request_stays_the_same_object() -> None:
    """A name that stands for a model and nothing else costs no copy."""
    request = CreateResponse(model="a", temperature=0.5)

    assert with_params_under(request, CreateResponse()) is request
    assert with_params_under(request, CreateResponse(temperature=1.0)) is request


def test_a_conversation_is_never_taken_from_settings() -> None:
    """Only settings are merged: an alias cannot put words into a request."""
    under = CreateResponse(input="hidden", instructions="hidden", model="other")

    merged = with_params_under(CreateResponse(model="a"), under)

    assert merged == CreateResponse(model="a")
    assert msgspec.structs.asdict(merged)["input"] is None
