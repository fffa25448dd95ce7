"""Fields that a snippet adds to the schema of the deck that embeds it."""

from gambit_actors.deck.tables import Table
from gambit_actors.schema.forms import properties, required
from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.schemas import LoadedSchema


def with_fragment(
    schema: LoadedSchema | None, fragment: LoadedSchema, *, table: Table, key: str
) -> LoadedSchema:
    """Add the fields of a fragment to a schema; where both have one, its own stays.

    Without a schema the fragment is the schema. Only objects have fields to add.
    """
    if schema is None or schema.schema is None or fragment.schema is None:
        return fragment
    problem = _problem(schema.schema, fragment.schema, key)
    if problem is not None:
        table.report("GD056", "error", problem, key=key)
        return schema
    merged = _merged(schema.schema, fragment.schema)
    return LoadedSchema(schema=merged, source=schema.source)


def _problem(schema: Schema, fragment: Schema, key: str) -> str | None:
    for whose, each in (("the deck's schema", schema), ("it", fragment)):
        if each.get("type") != "object":
            return f"{key} can only add fields to an object, and {whose} is not one."
    clashes = _definitions(schema).keys() & _definitions(fragment).keys()
    same = all(_definitions(schema)[n] == _definitions(fragment)[n] for n in clashes)
    if not same:
        names = ", ".join(sorted(clashes))
        return f"The deck's schema and the snippet's both define {names}; rename one."
    return None


def _merged(schema: Schema, fragment: Schema) -> Schema:
    own, added = properties(schema), properties(fragment)
    needed = required(schema) | (required(fragment) - own.keys())
    merged = schema | {"properties": added | own}
    merged |= {"required": sorted(needed)} if needed else {}
    definitions = _definitions(fragment) | _definitions(schema)
    return merged | ({"$defs": definitions} if definitions else {})


def _definitions(schema: Schema) -> Schema:
    found = schema.get("$defs", {})
    return found if isinstance(found, dict) else {}
