"""The built-in snippets and bridge decks are well-formed and say what they must."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
import tomli

from gambit_actors.deck.builtin import (
    DECK_SCHEME,
    DECKS,
    SNIPPET_SCHEME,
    SNIPPETS,
    closest_name,
)
from gambit_actors.schema.builtin import builtin_schema

PLAIN_CHAT = "gambit://schemas/scenarios/plain_chat_output.zod.ts"
TEXTS = SNIPPETS | DECKS
URIS = [SNIPPET_SCHEME + name for name in SNIPPETS]


def parts(text: str) -> tuple[dict[str, Any], str]:
    """Cut a file into its frontmatter, parsed, and its body."""
    before, front, body = re.split(r"^\+\+\+\n", text, flags=re.MULTILINE)
    assert before == ""
    return tomli.loads(front), body


def words(name: str) -> str:
    """Give the body of a built-in on one line, so that wrapping does not matter."""
    return " ".join(parts(TEXTS[name])[1].split())


def test_the_built_ins_are_those_of_the_format() -> None:
    """The names are the ones the deck format lists, the deprecated alias aside."""
    assert {SNIPPET_SCHEME + name for name in SNIPPETS} == {
        "gambit://snippets/context.md",
        "gambit://snippets/init.md",
        "gambit://snippets/scenario-participant.md",
        "gambit://snippets/respond.md",
        "gambit://snippets/end.md",
    }
    assert {DECK_SCHEME + name for name in DECKS} == {
        "gambit://decks/openai/codex-sdk/PROMPT.md",
        "gambit://decks/anthropic/agent-sdk/PROMPT.md",
    }


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_sets_its_own_flag_only(name: str) -> None:
    """Only respond.md turns respond on, only end.md allowEnd; all have a label."""
    front, body = parts(SNIPPETS[name])
    flags = {"respond.md": {"respond": True}, "end.md": {"allowEnd": True}}
    assert front.pop("label")
    assert front == flags.get(name, {})
    assert body.strip()


@pytest.mark.parametrize("name", TEXTS)
def test_a_built_in_can_be_pasted_anywhere(name: str) -> None:
    """No built-in embeds another, opens a heading or leaves a code fence open."""
    _, body = parts(TEXTS[name])
    assert "![" not in body
    assert not re.search(r"^#", body, flags=re.MULTILINE)
    assert body.count("```") % 2 == 0
    assert body.endswith(".\n")


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "context.md",
            [
                "opens with a result of the tool `gambit_context`",
                "Read it first",
                "Keep using it",
                "Never call `gambit_context`",
            ],
        ),
        (
            "init.md",
            [
                '"type": "gambit_test_bot_init_fill"',
                '"missing": [',
                '"current": {',
                '"schemaHints": [',
                "Reply with JSON and nothing else",
                "every field in `missing` and no other",
                "only path in `missing` is `(root)`",
                "the whole value",
            ],
        ),
        (
            "scenario-participant.md",
            [
                "Be the user on every turn",
                "Never speak as the assistant",
                "nothing about tools",
                "exactly one empty message",
            ],
        ),
        (
            "respond.md",
            [
                "`gambit_respond` exactly once",
                "Do not finish with prose",
                "`payload`",
                "`status` (optional)",
                "`message` (optional)",
                "`code` (optional)",
                "`meta` (optional)",
            ],
        ),
        (
            "end.md",
            [
                "`gambit_end`",
                "only when the conversation as a whole must stop",
                "arguments are optional",
                "`message`",
                "`payload`",
                "`status`",
                "`code`",
                "`meta`",
            ],
        ),
    ],
)
def test_a_snippet_tells_the_model_its_facts(name: str, facts: list[str]) -> None:
    """Each snippet carries the whole contract of the exchange it explains."""
    assert [fact for fact in facts if fact not in words(name)] == []


def test_the_init_example_is_a_real_request() -> None:
    """The message shown is JSON, and the reply shown fills just what it misses."""
    found = re.search(r"```json\n(.*?)```", SNIPPETS["init.md"], flags=re.DOTALL)
    assert found
    request = json.loads(found[1])
    assert list(request) == ["type", "missing", "current", "schemaHints"]
    assert request["missing"] == [hint["path"] for hint in request["schemaHints"]]
    assert request["missing"] == ["customer.name"]
    assert '`{"customer": {"name": "Ada Byron"}}`' in words("init.md")


@pytest.mark.parametrize(
    ("name", "runtime", "notes"),
    [
        ("openai/codex-sdk/PROMPT.md", "Codex SDK", "AGENTS.md"),
        ("anthropic/agent-sdk/PROMPT.md", "Claude Agent SDK", "CLAUDE.md"),
    ],
)
def test_a_bridge_tells_its_agent_how_it_is_linked(
    name: str, runtime: str, notes: str
) -> None:
    """A bridge deck chats in plain text and names runtime, link and deck rules."""
    front, _ = parts(DECKS[name])
    assert front == {
        "label": f"{runtime} bridge",
        "contextSchema": PLAIN_CHAT,
        "responseSchema": PLAIN_CHAT,
    }
    assert builtin_schema(PLAIN_CHAT) == {"type": "string"}
    facts = [
        f"linked to Gambit through the {runtime}",
        f"`{notes}`",
        "Your last message of a turn is your answer",
        "permissions and guardrails do not reach your own tools",
        "Never report a change you did not make",
        "`PROMPT.md`",
        "`INTENT.md`",
        "`gambit check`",
    ]
    assert [fact for fact in facts if fact not in words(name)] == []


@pytest.mark.parametrize(
    ("written", "names", "meant"),
    [
        ("repsond.md", SNIPPETS, "respond.md"),
        ("scenario_participant.md", SNIPPETS, "scenario-participant.md"),
        ("openai/codex-sdk", DECKS, "openai/codex-sdk/PROMPT.md"),
        ("antropic/agent-sdk/PROMPT.md", DECKS, "anthropic/agent-sdk/PROMPT.md"),
        (SNIPPET_SCHEME + "repond.md", URIS, SNIPPET_SCHEME + "respond.md"),
        (SNIPPET_SCHEME + "weather.md", URIS, None),
        (DECK_SCHEME + "mistral/PROMPT.md", URIS, None),
        ("weather", SNIPPETS, None),
        ("", SNIPPETS, None),
        ("end.md", [], None),
    ],
)
def test_a_misspelt_name_leads_to_the_closest(
    written: str, names: Iterable[str], meant: str | None
) -> None:
    """A near miss finds the name that was meant, and a far one finds none."""
    assert closest_name(written, names) == meant
