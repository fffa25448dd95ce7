"""A tree of 200 decks on disk, such as a team would have: the same on every run.

A root with three levels of actions below it, handlers, scenarios and graders. Every
action has two schemas, most of them Zod modules that import from a shared one, some
JSON Schema. Prompts embed snippets of their own and of ours. No deck refers to Python:
importing a module takes a process of its own, which is not what is measured here.
"""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

DECKS = 200
ENTRYPOINT = "PROMPT.md"
CHANGED_PROMPT = "actions/a0/actions/b0/actions/c0/PROMPT.md"
CHANGED_SCHEMA = "shared/money.zod.ts"
"""Imported by the other shared one and by every Zod module of an action."""

_WIDTHS = (6, 5, 4)
_LETTERS = "abc"
_PLAIN_CHAT = "gambit://schemas/scenarios/plain_chat_output.zod.ts"
_TURN = "gambit://schemas/graders/contexts/turn.zod.ts"
_RESPOND = "![respond](gambit://snippets/respond.md)"
_LINES = (
    "You work for a shop that sells bicycles and their parts.",
    "Tell only what the context says, and ask for what it leaves out.",
    "- Prices are in cents; write them in euros, with two digits behind the point.",
    "- A wheel that was trued twice within a month is looked at by a person.",
    "- Never promise a date that the workshop has not confirmed.",
    "If two rules disagree, the stricter one holds.",
)

_MONEY = """\
import { z } from "npm:zod";

export const cents = z.number().int().min(0).describe("An amount in euro cents.");
export const currency = z.enum(["EUR", "CHF", "SEK"]);
export const price = z.object({ cents, currency: currency.default("EUR") });
export default price;
"""
_ORDER = """\
import { z } from "npm:zod";
import { price } from "./money.zod.ts";

const item = z.object({
  title: z.string().min(1),
  price,
  count: z.number().int().min(1).max(99).default(1),
});

export const order = z.object({
  number: z.string().regex(/^LL-[0-9]{4}$/),
  status: z.enum(["processing", "sent", "delivered"]),
  items: z.array(item).min(1),
  note: z.string().max(500).optional(),
});
export default order;
"""
_CONTEXT = """\
import { z } from "npm:zod";
import { order } from "%(up)sshared/order.zod.ts";
import { cents } from "%(up)sshared/money.zod.ts";

export default z.object({
  order,
  limit: cents.optional(),
  wish: z.enum(["refund", "replacement", "%(name)s"]),
  details: z.string().describe("What the customer said, in a sentence or two."),
});
"""
_RESPONSE = """\
import { z } from "npm:zod";
import { price } from "%(up)sshared/money.zod.ts";

export default z.object({
  decision: z.enum(["yes", "no", "ask_human"]),
  amount: price,
  rule: z.string().describe("The rule that decided, such as %(name)s."),
  steps: z.array(z.object({ title: z.string(), done: z.boolean() })).max(20),
});
"""
_TRIAL_CONTEXT = """\
import { z } from "npm:zod";

export default z.object({ patience: z.number().int().min(1).max(10).default(5) });
"""
_JSON_CONTEXT = {
    "type": "object",
    "properties": {
        "orderNumber": {"type": "string", "pattern": "^LL-[0-9]{4}$"},
        "amountCents": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
    },
    "required": ["orderNumber"],
    "$defs": {"tag": {"enum": ["late", "broken", "wrong"]}},
}
_JSON_RESPONSE = {
    "type": "object",
    "properties": {"found": {"type": "boolean"}, "text": {"type": "string"}},
    "required": ["found"],
}


class TreeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How large a tree is, and in how many files the shared schema is imported."""

    decks: int
    importers: int
    files: int
    size: int


class _Deck(NamedTuple):
    """A folder, and what its frontmatter and prompt say besides the usual."""

    folder: str
    name: str
    schemas: tuple[str, str] | None = None
    references: tuple[str, ...] = ()
    embeds: tuple[str, ...] = ()


def write_tree(root: Path) -> TreeFacts:
    """Write the tree into an empty folder."""
    files = dict(_files())
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    decks = sum(Path(name).name == ENTRYPOINT for name in files)
    assert decks == DECKS, f"{decks} decks were written"
    size = sum(len(text.encode()) for text in files.values())
    importers = sum("/money.zod.ts" in text for text in files.values())
    return TreeFacts(decks=decks, importers=importers, files=len(files), size=size)


def _files() -> Iterator[tuple[str, str]]:
    yield CHANGED_SCHEMA, _MONEY
    yield "shared/order.zod.ts", _ORDER
    yield "snippets/tone.md", "Be friendly and brief.\n\n![rules](./rules.md)\n"
    yield "snippets/rules.md", "\n".join(f"- Rule {n}: be fair." for n in range(20))
    references = (
        *_actions("", 0),
        *_trials(scenarios=3, graders=2),
        '[handlers.onBusy]\npath = "./handlers/busy/PROMPT.md"\ndelayMs = 4000',
        '[handlers.onError]\npath = "./handlers/error/PROMPT.md"',
    )
    embeds = ("./snippets/tone.md", "gambit://snippets/end.md")
    yield from _deck(_Deck("", "desk", None, references, embeds))
    yield from _deck(_Deck("handlers/busy/", "busy"))
    yield from _deck(_Deck("handlers/error/", "error"))
    yield from _trial_decks("", scenarios=3, graders=2)
    for number in range(_WIDTHS[0]):
        yield from _action_decks("", 0, number)


def _action_decks(parent: str, level: int, number: int) -> Iterator[tuple[str, str]]:
    """An action with its schemas and everything below it."""
    name = f"{_LETTERS[level]}{number}"
    folder = f"{parent}actions/{name}/"
    is_last, is_first = level + 1 == len(_WIDTHS), level == 0
    up = "../" * (2 * (level + 1))
    suffix = "json" if number % 3 == 2 else "zod.ts"
    for kind, zod, plain in (
        ("context", _CONTEXT, _JSON_CONTEXT),
        ("response", _RESPONSE, _JSON_RESPONSE),
    ):
        text = zod % {"up": up, "name": name}
        if suffix == "json":
            text = json.dumps(plain, indent=2)
        yield f"{folder}{kind}.{suffix}", text
    references = () if is_last else tuple(_actions(folder, level + 1))
    references += tuple(_trials(scenarios=3, graders=3)) if is_first else ()
    schemas = (f"./context.{suffix}", f"./response.{suffix}")
    embeds = (f"{up}snippets/tone.md",)
    yield from _deck(_Deck(folder, name, schemas, references, embeds))
    if is_first:
        yield from _trial_decks(folder, scenarios=3, graders=3)
    if not is_last:
        for below in range(_WIDTHS[level + 1]):
            yield from _action_decks(folder, level + 1, below)


def _actions(folder: str, level: int) -> Iterator[str]:
    """The references to the actions of a deck."""
    for number in range(_WIDTHS[level]):
        name = f"{_LETTERS[level]}{number}"
        yield (
            f'[[actions]]\nname = "{name}"\nlabel = "Action {name}"\n'
            f'description = "Do what {name} of {folder or "the desk"} is for."\n'
            f'path = "./actions/{name}/PROMPT.md"'
        )


def _trials(*, scenarios: int, graders: int) -> Iterator[str]:
    """The references to the scenarios and graders of a deck."""
    for number in range(scenarios):
        yield f'[[scenarios]]\npath = "./scenarios/s{number}/PROMPT.md"'
    for number in range(graders):
        yield f'[[graders]]\npath = "./graders/g{number}/PROMPT.md"'


def _trial_decks(
    folder: str, *, scenarios: int, graders: int
) -> Iterator[tuple[str, str]]:
    for number in range(scenarios):
        inner = f"{folder}scenarios/s{number}/"
        yield f"{inner}context.zod.ts", _TRIAL_CONTEXT
        schemas = ("./context.zod.ts", _PLAIN_CHAT)
        embeds = ("gambit://snippets/scenario-participant.md",)
        yield from _deck(_Deck(inner, f"s{number}", schemas, (), embeds))
    for number in range(graders):
        schemas = (_TURN, "gambit://schemas/graders/grader_output.zod.ts")
        yield from _deck(_Deck(f"{folder}graders/g{number}/", f"g{number}", schemas))


def _deck(deck: _Deck) -> Iterator[tuple[str, str]]:
    front = [f'label = "Deck {deck.name}"']
    if deck.schemas is not None:
        context, response = deck.schemas
        front += [f'contextSchema = "{context}"', f'responseSchema = "{response}"']
    front += [
        '\n[modelParams]\nmodel = ["openai/gpt-5-mini", "openai/gpt-5"]',
        'reasoning = { effort = "low" }\n',
        "[guardrails]\nmaxPasses = 6\ntimeoutMs = 60000\n",
        *deck.references,
    ]
    is_plain_chat = deck.schemas is not None and deck.schemas[1] == _PLAIN_CHAT
    embeds = [f"![part of it]({target})" for target in deck.embeds]
    embeds += [] if deck.schemas is None or is_plain_chat else [_RESPOND]
    body = [f"You are {deck.name}.", *_LINES * 4, *embeds]
    prompt = "\n\n".join(textwrap.fill(line, 88) for line in body)
    yield (
        f"{deck.folder}{ENTRYPOINT}",
        "\n".join(["+++", *front, "+++", "", prompt, ""]),
    )
    yield f"{deck.folder}INTENT.md", f"# Intent: {deck.name}\n\n- To be measured.\n"
