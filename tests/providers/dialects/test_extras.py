"""Further keys of a request do not get around its limits, in any dialect."""

import json
from typing import Any

import pytest

from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.chat import OPENAI, ChatDialect
from gambit_actors.providers.dialects.dialect import Dialect, Rendered
from gambit_actors.providers.dialects.gemini import GeminiDialect
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect

DIALECTS: list[Dialect] = [
    AnthropicDialect(),
    ChatDialect(),
    ChatDialect(flavour=OPENAI),
    GeminiDialect(),
    OpenResponsesDialect(),
]
BIG = 987_654


def rendered(dialect: Dialect, extra: dict[str, Any], limit: int | None) -> Rendered:
    """What a request with these further keys is sent as."""
    request = CreateResponse(
        model="gemini-3", input="Hi.", max_output_tokens=limit, extra=Extra(extra)
    )
    return dialect.render(request, stream=True)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"max_tokens": BIG}, "max_tokens"),
        ({"max_completion_tokens": BIG}, "max_completion_tokens"),
        ({"max_output_tokens": BIG}, "max_output_tokens"),
        ({"maxOutputTokens": BIG}, "maxOutputTokens"),
        ({"n_predict": BIG}, "n_predict"),
        ({"options": {"num_predict": BIG, "a": 1}}, "options.num_predict"),
        (
            {"generationConfig": {"maxOutputTokens": BIG}},
            "generationConfig.maxOutputTokens",
        ),
        (
            {"generation_config": {"max_output_tokens": BIG}},
            "generation_config.max_output_tokens",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_limit_that_is_set_cannot_be_raised(
    dialect: Dialect, extra: dict[str, Any], path: str
) -> None:
    """Other names for the length of an answer are left out and told."""
    sent = rendered(dialect, extra, 100)

    assert str(BIG) not in json.dumps(sent.body)
    assert "100" in json.dumps(sent.body)
    assert path in [left.path for left in sent.unsent]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"n": BIG}, "n"),
        ({"best_of": BIG}, "best_of"),
        ({"candidateCount": BIG}, "candidateCount"),
        (
            {"generationConfig": {"candidateCount": BIG}},
            "generationConfig.candidateCount",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_more_than_one_answer_is_never_asked_for(
    dialect: Dialect, limit: int | None, extra: dict[str, Any], path: str
) -> None:
    """One answer is read, so others would be paid for and thrown away."""
    sent = rendered(dialect, extra, limit)

    assert str(BIG) not in json.dumps(sent.body)
    assert path in [left.path for left in sent.unsent]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_other_keys_go_out_as_they_are(dialect: Dialect) -> None:
    """Without a limit a length stays, and what is no limit stays always."""
    extra = {"max_completion_tokens": BIG, "options": {"num_ctx": 7}, "tokens": 1}
    sent = rendered(dialect, extra, None)

    assert sent.body["max_completion_tokens"] == BIG
    assert (sent.body["options"], sent.body["tokens"]) == ({"num_ctx": 7}, 1)
    assert not sent.unsent
