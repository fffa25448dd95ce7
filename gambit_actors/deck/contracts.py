"""What an action takes and gives, and whether it is said the same way everywhere.

A deck says it in its own frontmatter, a module in its definition; either may also be
said beside the reference. Wherever it is said twice, both must match deeply.
"""

from collections.abc import Iterator

from gambit_actors.deck.legacy import OLD_SCHEMAS
from gambit_actors.deck.loading import Loading
from gambit_actors.deck.model import Module
from gambit_actors.deck.tables import Table
from gambit_actors.schema.matching import differences
from gambit_actors.schema.schemas import LoadedSchema, joined

KEYS = ("contextSchema", "responseSchema")
"""What is taken, and what is given."""

_SCRIPTS = (".ts", ".mts", ".js", ".mjs")
_MOST_DIFFERENCES = 5


def module_contract(
    loading: Loading, table: Table, inline: dict[str, LoadedSchema]
) -> Module | None:
    """Find out what a module that an action executes takes and gives."""
    reference = table.text("execute")
    if reference is None:
        return None
    path = joined(table.document.source.file, reference)
    if loading.reader.read_text(path) is None:
        message = f"There is no module at {path}."
        table.report("GD032", "error", message, key="execute")
        return None
    declared = _declared(loading, table, path)
    if declared is None:
        return None
    for key in [key for key in KEYS if key in inline and key in declared]:
        compare(table, key, inline[key], declared[key], other=path)
    return _resolved(table, path, declared | inline)


def _resolved(
    table: Table, path: str, resolved: dict[str, LoadedSchema]
) -> Module | None:
    missing = [key for key in KEYS if key not in resolved]
    for key in missing:
        # If it is there, by either name, what is wrong with it has been said.
        if key not in table and OLD_SCHEMAS[key] not in table:
            verb = "takes" if key == "contextSchema" else "gives"
            message = f"What this action {verb} is not declared; add a {key}."
            hint = f"It can stand here, or in {path}." if path.endswith(".py") else None
            table.report("GD025", "error", message, hint=hint)
    if missing:
        return None
    return Module(
        path=path,
        context_schema=resolved["contextSchema"],
        response_schema=resolved["responseSchema"],
    )


def compare(
    table: Table,
    key: str,
    schema: LoadedSchema,
    other_schema: LoadedSchema,
    *,
    other: str,
) -> None:
    """Say in which fields a schema beside a reference differs from its target's."""
    for words in _differences(schema, other_schema):
        message = f"{key} does not match the one of {other}: {words}."
        table.report("GD026", "error", message, key=key)


def _differences(schema: LoadedSchema, other: LoadedSchema) -> Iterator[str]:
    if schema.schema is None or other.schema is None:
        return
    # Seen from here: what is written beside the reference is what is expected.
    found = differences(schema.schema, other.schema)
    yield from map(str, found[:_MOST_DIFFERENCES])
    if len(found) > _MOST_DIFFERENCES:
        yield f"and {len(found) - _MOST_DIFFERENCES} more differences"


def _declared(
    loading: Loading, table: Table, path: str
) -> dict[str, LoadedSchema] | None:
    """What a module says of itself; None if it cannot be used."""
    if path.endswith(_SCRIPTS):
        # What it declares is code; only what is written here can be known.
        message = f"{path} is not Python and cannot be run by this release."
        table.report("GD027", "warning", message, key="execute")
        return {}
    if not path.endswith(".py"):
        message = f"{path} is not a Python module."
        table.report("GD027", "error", message, key="execute")
        return None
    try:
        return loading.module_schemas(path, table.findings)
    except LookupError as problem:
        message = f"The module {path} cannot be used: {problem.args[0]}."
        table.report("GD027", "error", message, key="execute")
        return None
