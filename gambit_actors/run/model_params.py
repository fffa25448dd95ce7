"""What is asked of a model besides the conversation: settings, and whose come first."""

import msgspec

from gambit_actors.deck.model import ModelParams
from gambit_actors.openresponses.base import NO_EXTRA, Extra, JSONValue
from gambit_actors.openresponses.requests import CreateResponse, ReasoningConfig

_LEAST_TOKENS = 16  # The wire allows no less.

# Settings that may stand behind a name for a model; the rest is the conversation's.
_MERGED = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "max_output_tokens",
    "reasoning",
)


def request_of_params(params: ModelParams) -> CreateResponse:
    """Say settings in the form of a request that has nothing else."""
    reasoning = None
    if params.reasoning is not None:
        reasoning = ReasoningConfig(
            effort=params.reasoning.effort, summary=params.reasoning.summary
        )
    most = params.max_tokens
    return CreateResponse(
        reasoning=reasoning,
        temperature=params.temperature,
        top_p=params.top_p,
        frequency_penalty=params.frequency_penalty,
        presence_penalty=params.presence_penalty,
        max_output_tokens=None if most is None else max(most, _LEAST_TOKENS),
        extra=Extra(params.additional) if params.additional else NO_EXTRA,
    )


def with_params_under(
    request: CreateResponse, params: CreateResponse
) -> CreateResponse:
    """A request that asks for these settings where it asks for nothing else."""
    filled: dict[str, JSONValue] = {
        name: value
        for name in _MERGED
        if getattr(request, name) is None
        and (value := getattr(params, name)) is not None
    }
    if params.extra:
        filled["extra"] = Extra(params.extra | request.extra)
    return msgspec.structs.replace(request, **filled) if filled else request
