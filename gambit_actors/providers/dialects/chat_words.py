"""What servers of Chat Completions say in passing: why they stopped, what it cost.

Every server has words of its own for the same few things. Here they become ours.
"""

from typing import Literal, TypeAlias

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.responses import Usage
from gambit_actors.providers.dialects.counting import usage_of

Ending: TypeAlias = Literal["stop", "calls", "length", "filter", "broken"]

_WORDS: dict[Ending, str] = {
    "stop": "stop eos eos_token end end_turn stop_sequence complete completed",
    "calls": "tool_calls tool_call tool_use function_call",
    "length": "length max_tokens max_length max_output_tokens max_completion_tokens"
    " model_length model_context_window_exceeded",
    "filter": "content_filter content_filtered safety image_safety recitation"
    " blocklist prohibited_content spii sensitive refusal guardrail_intervened",
    "broken": "error abort aborted cancelled canceled network_error"
    " insufficient_system_resource malformed_function_call",
}
_ENDINGS = {word: ending for ending, words in _WORDS.items() for word in words.split()}


def ending_of(finish_reason: str) -> Ending | None:
    """What a finish reason means; None if nobody knows."""
    return _ENDINGS.get(finish_reason.lower())


def usage_in(usage: JSONValue) -> Usage | None:
    """Read token counts; None if they are none."""
    if not isinstance(usage, dict):
        return None
    spent = _details(usage, "prompt_tokens_details", "input_tokens_details")
    made = _details(usage, "completion_tokens_details", "output_tokens_details")
    return usage_of(
        input_tokens=usage.get("prompt_tokens", usage.get("input_tokens")),
        output_tokens=usage.get("completion_tokens", usage.get("output_tokens")),
        total_tokens=usage.get("total_tokens"),
        # DeepSeek's name for it stands outside of the details.
        cached_tokens=spent.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
        reasoning_tokens=made.get("reasoning_tokens"),
    )


def _details(usage: dict[str, JSONValue], *keys: str) -> dict[str, JSONValue]:
    found = next((usage[key] for key in keys if key in usage), None)
    return found if isinstance(found, dict) else {}
