"""Tool arguments to check: two schemas, and values of which one in ten is wrong.

Before anything is timed, every contender has to be right about every value. That is why
the values have no unknown keys: we drop those, as Zod does, and the others refuse them.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jsonschema_rs
import msgspec

from benchmarks.costs import Cost, cost_from
from benchmarks.peers import Jsonschema
from benchmarks.timing import Effort, race
from gambit_actors.schema.schemas import LoadedSchema, load_schema

JSONValue: TypeAlias = Any
CheckAll: TypeAlias = Callable[[Sequence[JSONValue]], list[bool]]
"""Checks values, gives for each whether it is valid."""

FLOOR = "jsonschema-rs is_valid"
OURS = "ours"
PYTHON = "jsonschema (Python)"

CASE = "1 in 10 wrong"
WRONG_EVERY = 10

_FLAT = """\
import { z } from "npm:zod";

export default z.object({
  query: z.string().min(1).max(200),
  limit: z.number().int().min(1).max(100).default(10),
  sort: z.enum(["newest", "oldest", "best"]),
  isExact: z.boolean(),
  language: z.string().regex(/^[a-z]{2}$/).optional(),
});
"""
_NESTED = """\
import { z } from "npm:zod";

const address = z.object({
  street: z.string().min(1),
  city: z.string().min(1),
  country: z.string().length(2).default("DE"),
});
const item = z.object({
  sku: z.string().regex(/^[A-Z]{2}-[0-9]{4}$/),
  count: z.number().int().min(1).default(1),
  price: z.object({ cents: z.number().int().min(0), currency: z.enum(["EUR", "CHF"]) }),
  tags: z.array(z.string().max(20)).max(5),
});

export default z.object({
  customer: z.object({ name: z.string(), address, note: z.string().nullable() }),
  items: z.array(item).min(1).max(50),
  payment: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("card"), last4: z.string().length(4) }),
    z.object({ kind: z.literal("invoice"), days: z.number().int().max(60) }),
  ]),
});
"""


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """A schema and the values that are checked against it."""

    name: str
    loaded: LoadedSchema
    values: list[JSONValue]


class Disagreement(Exception):
    """A validator does not judge a value as it was meant."""


def all_arguments(count: int) -> list[Arguments]:
    """Both schemas, with so many values each."""
    chance = random.Random(20261118)  # noqa: S311  # the same on every run
    return [
        _arguments("5 fields", _FLAT, [_flat(chance, n) for n in range(count)]),
        _arguments("nested", _NESTED, [_nested(chance, n) for n in range(count)]),
    ]


def measure_arguments(
    arguments: Arguments, jsonschema: Jsonschema | None, effort: Effort
) -> list[Cost]:
    """The cost of a check for each validator.

    Raises:
        Disagreement: one of them is wrong about a value.
    """
    contenders = _contenders(arguments.loaded, jsonschema)
    values = arguments.values
    for name, check_all in contenders.items():
        for number, is_valid in enumerate(check_all(values)):
            if is_valid == is_wrong(number):
                msg = f"{name} finds {values[number]} {'' if is_valid else 'in'}valid"
                raise Disagreement(msg)
    runs = {name: _bound(check, values) for name, check in contenders.items()}
    return [
        cost_from(timing, len(values), (arguments.name, CASE, name))
        for name, timing in race(runs, effort).items()
    ]


def is_wrong(number: int) -> bool:
    """Whether the value of a number was made to be wrong."""
    return number % WRONG_EVERY == 0


def _arguments(name: str, text: str, values: list[JSONValue]) -> Arguments:
    loaded = load_schema(
        "./arguments.zod.ts", base="PROMPT.md", read_file=lambda _file: text
    )
    return Arguments(name=name, loaded=loaded, values=values)


def _flat(chance: random.Random, number: int) -> JSONValue:
    value: dict[str, JSONValue] = {
        "query": chance.choice(("wheels", "a saddle for long tours", "Größe 28")),
        "sort": chance.choice(("newest", "oldest", "best")),
        "isExact": chance.random() < 0.5,
    }
    if chance.random() < 0.5:
        value["limit"] = chance.randint(1, 100)
    if chance.random() < 0.5:
        value["language"] = chance.choice(("de", "en", "sv"))
    if is_wrong(number):
        wrong: tuple[dict[str, JSONValue], ...] = (
            {"query": ""},
            {"sort": "worst", "limit": 0},
            {"isExact": "yes"},
            {"language": "deu", "limit": "10"},
        )
        value |= chance.choice(wrong)
    return value


def _nested(chance: random.Random, number: int) -> JSONValue:
    item = {
        "sku": f"WH-{chance.randint(1000, 9999)}",
        "price": {"cents": chance.randint(0, 99_999), "currency": "EUR"},
        "tags": ["new", "light"],
    }
    items = [dict(item) for _ in range(chance.randint(1, 4))]
    value: dict[str, JSONValue] = {
        "customer": {
            "name": "Ada",
            "address": {"street": "Hauptstraße 1", "city": "Köln"},
            "note": None,
        },
        "items": items,
        "payment": {"kind": "card", "last4": "4242"}
        if chance.random() < 0.5
        else {"kind": "invoice", "days": 30},
    }
    if is_wrong(number):
        wrong: tuple[dict[str, JSONValue], ...] = (
            {"sku": "wheel"},
            {"count": 0, "tags": "new"},
            {"price": {"cents": -1, "currency": "USD"}},
        )
        items[-1] |= chance.choice(wrong)
    return value


def _contenders(
    loaded: LoadedSchema, jsonschema: Jsonschema | None
) -> Mapping[str, CheckAll]:
    found: dict[str, CheckAll] = {FLOOR: _floor(loaded), OURS: _ours(loaded)}
    if jsonschema is not None:
        found[PYTHON] = _python(jsonschema, loaded)
    return found


def _floor(loaded: LoadedSchema) -> CheckAll:
    """The least there is: valid or not, and not a word why."""
    is_valid = jsonschema_rs.Draft202012Validator(loaded.schema or {}).is_valid

    def check_all(values: Sequence[JSONValue]) -> list[bool]:
        return [is_valid(value) for value in values]

    return check_all


def _ours(loaded: LoadedSchema) -> CheckAll:
    """Defaults filled in, unknown keys dropped, all that is wrong in words."""
    check = loaded.validator.check

    def check_all(values: Sequence[JSONValue]) -> list[bool]:
        return [not check(value).problems for value in values]

    return check_all


def _python(jsonschema: Jsonschema, loaded: LoadedSchema) -> CheckAll:
    """All that is wrong, in its own words; nothing is filled in or dropped."""
    iter_errors = jsonschema.new_validator(loaded.schema or {}).iter_errors

    def check_all(values: Sequence[JSONValue]) -> list[bool]:
        return [not [error.message for error in iter_errors(v)] for v in values]

    return check_all


def _bound(
    check_all: CheckAll, values: Sequence[JSONValue]
) -> Callable[[], list[bool]]:
    return lambda: check_all(values)
