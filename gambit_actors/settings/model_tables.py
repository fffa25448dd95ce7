"""``[models]`` of gambit.toml: other names for models, and what models cost."""

import msgspec

from gambit_actors.deck.keys import MODEL_KEYS
from gambit_actors.deck.model import ModelParams
from gambit_actors.deck.sections import read_model_params
from gambit_actors.deck.tables import Table
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.describing import shown
from gambit_actors.providers.router import (
    MOST_NAMES,
    TOO_MANY,
    Alias,
    TooManyNames,
    expanded,
)
from gambit_actors.run.budgets import Price
from gambit_actors.run.model_params import request_of_params
from gambit_actors.settings.provider_tables import check_all_keys

ALIAS_KEYS = ("model", "description", "params")
"""The keys of an alias that are not also those of a deck's ``[modelParams]``."""

PRICE_KEYS = ("input", "output", "cached_input")

_PARAM_KEYS = tuple(
    key for key in (*MODEL_KEYS, "additionalParams") if key not in ALIAS_KEYS
)


def read_aliases(table: Table) -> dict[str, Alias]:
    """Read ``[models.aliases]``; a circle of names is a mistake, and so is a flood."""
    found: dict[str, Alias] = {}
    for name in table.values:
        inner = table.table(name)
        if inner is None:
            continue
        if "/" in name or not name.strip():
            message = (
                f"models.aliases.{shown(name)} is no alias: a name with a slash is that"
                " of a model."
            )
            inner.report("GD012", "error", message)
            continue
        found[name] = _alias(inner)
    _check_aliases(table, found)
    return found


def read_prices(table: Table) -> dict[str, Price]:
    """Read tables of prices, each by the name of a model."""
    found = {}
    for model in table.values:
        inner = table.table(model)
        price = None if inner is None else _price(inner)
        if price is not None:
            found[model] = price
    return found


def _alias(table: Table) -> Alias:
    check_all_keys(table, {*ALIAS_KEYS, *_PARAM_KEYS})
    if "model" not in table:
        table.text("model", required=True)
    own = {key: table.values[key] for key in table.values if key not in _OWN_ONLY}
    if own.get("model") == []:
        # Not left to who reads decks, which would call it modelParams.model.
        name = ".".join(map(str, (*table.path, "model")))
        table.report(
            "GD012", "error", f"{name} is an empty list; name a model.", key="model"
        )
        own.pop("model")
    params = read_model_params(_part(table, own))
    models = params.models
    below = table.table("params")
    if below is not None:
        check_all_keys(below, _PARAM_KEYS)
        params = _under(params, read_model_params(below))
    request = request_of_params(params)
    description = table.text("description") or ""
    return Alias(models=models, params=request, description=description)


_OWN_ONLY = frozenset({"description", "params"})


def _part(table: Table, values: dict[str, object]) -> Table:
    return Table(table.document, table.findings, values, table.path)


def _under(first: ModelParams, second: ModelParams) -> ModelParams:
    """Settings with those of another where they say nothing."""
    filled = {
        field.name: getattr(second, field.name)
        for field in msgspec.structs.fields(ModelParams)
        if field.name not in ("models", "additional")
        and getattr(first, field.name) is None
    }
    additional = {**second.additional, **first.additional}
    return msgspec.structs.replace(first, **filled, additional=additional)


def _check_aliases(table: Table, aliases: dict[str, Alias]) -> None:
    """Refuse names that lead back to themselves, or to more than can be asked."""
    for name in aliases:
        below = _names_below(aliases, name)
        is_circle = below is not None and name in below
        is_flood = below is None or not (is_circle or _can_be_expanded(aliases, name))
        if is_circle or is_flood:
            problem = "leads back to itself" if is_circle else TOO_MANY
            message = f"models.aliases.{name} {problem}."
            table.report("GD012", "error", message, key=name)
        if is_flood:
            return  # Those that lead to it are no better, and may be thousands.


def _names_below(aliases: dict[str, Alias], name: str) -> set[str] | None:
    """The names that an alias comes to; None if they are too many."""
    waiting, seen = [name], set[str]()
    while waiting:
        alias = aliases.get(waiting.pop())
        below = [] if alias is None else set(alias.models) - seen
        if len(seen) + len(below) > MOST_NAMES:
            return None
        seen.update(below)
        waiting += below
    return seen


def _can_be_expanded(aliases: dict[str, Alias], name: str) -> bool:
    """Whether an alias comes to few enough models, with all the settings on the way."""
    try:
        for _ in expanded(aliases, name):
            pass
    except TooManyNames:
        return False
    except RequestError:
        return True  # A circle further down is told of with the names that are in it.
    return True


def _price(table: Table) -> Price | None:
    check_all_keys(table, PRICE_KEYS)
    for key in ("input", "output"):
        if key not in table:
            message = (
                f"The price of {table.path[-1]} needs {key}, for a million tokens."
            )
            table.report("GD013", "error", message)
    into, out = table.number("input", least=0), table.number("output", least=0)
    cached = table.number("cached_input", least=0)
    if into is None or out is None:
        return None
    return Price(input=into, output=out, cached_input=cached)
