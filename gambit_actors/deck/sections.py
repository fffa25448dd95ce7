"""The tables of a deck that refer to nothing else: parameters, limits, permissions."""

import math
from collections.abc import Callable

from gambit_actors.deck.covering import (
    COMMANDS,
    HOSTS,
    PATHS,
    PROGRAMS,
    VARIABLES,
    Grammar,
    is_usable,
)
from gambit_actors.deck.documents import Values
from gambit_actors.deck.keys import (
    GUARDRAIL_KEYS,
    MODEL_KEYS,
    PERMISSION_KEYS,
    TOP_LEVEL_KEYS,
)
from gambit_actors.deck.model import Guardrails, ModelParams, Reasoning
from gambit_actors.deck.permissions import Access, Permissions, RunAccess
from gambit_actors.deck.tables import Table, did_you_mean
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.describing import shown

_EFFORTS = ("none", "low", "medium", "high", "xhigh")
_SUMMARIES = ("concise", "detailed", "auto")
_TO_ADDITIONAL = (
    "it is not a parameter of every model; put it under [modelParams.additionalParams]"
)
_MILLISECONDS = 1000
_NESTED = 100


def read_model_params(table: Table | None) -> ModelParams:
    """Read ``[modelParams]``."""
    if table is None:
        return ModelParams()
    known = (*MODEL_KEYS, "additionalParams")
    others = [
        key
        for key in table.values.keys() - TOP_LEVEL_KEYS - {*known}
        if did_you_mean(key, known) is None
    ]
    table.check_keys(known, idle=dict.fromkeys(others, _TO_ADDITIONAL))
    return ModelParams(
        models=_models(table),
        temperature=table.number("temperature", least=0),
        top_p=table.number("top_p", least=0, most=1),
        frequency_penalty=table.number("frequency_penalty"),
        presence_penalty=table.number("presence_penalty"),
        max_tokens=table.whole("max_tokens", least=1),
        reasoning=_reasoning(table.table("reasoning")),
        additional=_additional(table),
    )


def read_guardrails(table: Table | None) -> Guardrails:
    """Read ``[guardrails]``."""
    if table is None:
        return Guardrails()
    table.check_keys(GUARDRAIL_KEYS)
    return Guardrails(
        max_depth=table.whole("maxDepth", least=1),
        max_passes=table.whole("maxPasses", least=1),
        timeout_seconds=seconds(table, "timeoutMs"),
        max_tokens=table.whole("maxTokens", least=1),
        max_cost=table.number("maxCost", least=0),
    )


def read_permissions(
    table: Table | None, resolve: Callable[[str], str]
) -> Permissions | None:
    """Read ``[permissions]`` of a deck or of a reference.

    Args:
        table: None if there is none, which is not the same as an empty one.
        resolve: makes a path absolute, from the file it is written in.
    """
    if table is None:
        return None
    table.check_keys(PERMISSION_KEYS)
    return Permissions(
        read=_access(table, "read", PATHS, resolve),
        write=_access(table, "write", PATHS, resolve),
        net=_access(table, "net", HOSTS),
        env=_access(table, "env", VARIABLES),
        run=_run_access(table, resolve),
    )


def seconds(table: Table, key: str) -> float | None:
    """A length of time that is written in milliseconds."""
    value = table.number(key, least=0)
    return None if value is None else value / _MILLISECONDS


def _models(table: Table) -> tuple[str, ...]:
    if isinstance(table.values.get("model"), list):
        models = table.texts("model") or ()
        if not table.values["model"]:
            message = (
                "modelParams.model is an empty list; name a model or leave it out."
            )
            table.report("GD012", "error", message, key="model")
        return models
    if "model" in table and not isinstance(table.values["model"], str):
        table.wrong_type("model", "a string or a list of strings")
        return ()
    model = table.text("model")
    return () if model is None else (model,)


def _reasoning(table: Table | None) -> Reasoning | None:
    if table is None:
        return None
    table.check_keys(("effort", "summary"))
    return Reasoning(
        effort=table.choice("effort", _EFFORTS),
        summary=table.choice("summary", _SUMMARIES),
    )


def _additional(table: Table) -> dict[str, JSONValue]:
    extra = table.table("additionalParams")
    if extra is None:
        return {}
    kept: Values = {}
    for key, value in extra.values.items():
        if key in MODEL_KEYS and key in table:
            message = (
                f"modelParams.additionalParams.{key} is overruled by modelParams.{key}."
            )
            extra.report("GD016", "warning", message, key=key)
        elif not _is_json(value, _NESTED):
            message = (
                f"modelParams.additionalParams.{key} has no JSON form; dates, inf and"
                " nan do not."
            )
            extra.report("GD015", "error", message, key=key)
        else:
            kept[key] = value
    return kept


def _is_json(value: JSONValue, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(value, dict):
        return all(_is_json(entry, depth - 1) for entry in value.values())
    if isinstance(value, list):
        return all(_is_json(entry, depth - 1) for entry in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int)


def _access(
    table: Table,
    key: str,
    grammar: Grammar,
    resolve: Callable[[str], str] | None = None,
) -> Access:
    value = table.values.get(key, False)
    if isinstance(value, bool):
        return value
    if isinstance(value, list):
        return _entries(table, key, grammar, resolve)
    message = f"permissions.{key} must be true, false or a list of strings."
    table.report("GD060", "error", message, key=key)
    return False


def _entries(
    table: Table,
    key: str,
    grammar: Grammar,
    resolve: Callable[[str], str] | None = None,
) -> tuple[str, ...]:
    """The entries of a list; one that can never fit anything is a mistake."""
    found = []
    for index, text in enumerate(table.texts(key) or ()):
        entry = text if resolve is None else resolve(text)
        if is_usable(entry, grammar):
            found.append(entry)
            continue
        message = f"{shown(text)} is not an entry that permissions.{key} can have."
        table.report("GD060", "error", message, key=(key, index))
    return tuple(found)


def _run_access(table: Table, resolve: Callable[[str], str]) -> bool | RunAccess:
    value = table.values.get("run", False)
    if isinstance(value, bool):
        return value
    if isinstance(value, list):
        return RunAccess(commands=_entries(table, "run", COMMANDS))
    run = table.table("run") if isinstance(value, dict) else None
    if run is None:
        message = "permissions.run must be true, false, a list of commands or a table."
        table.report("GD060", "error", message, key="run")
        return False
    run.check_keys(("commands", "paths"))
    for key in ("commands", "paths"):
        if isinstance(run.values.get(key), bool):
            message = (
                f"permissions.run.{key} must be a list; to allow all or nothing"
                " write run = true or run = false."
            )
            run.report("GD060", "error", message, key=key)
            return False
    return RunAccess(
        commands=_entries(run, "commands", COMMANDS),
        paths=_entries(run, "paths", PROGRAMS, resolve),
    )
