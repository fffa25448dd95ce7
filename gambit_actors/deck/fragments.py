"""Fields that a snippet adds to the schema of the deck that embeds it."""

from gambit_actors.deck.tables import Table
from gambit_actors.schema.forms import properties, required
from gambit_actors.schema.keywords import Schema, resolve
from gambit_actors.schema.schemas import LoadedSchema


def with_fragment(
    schema: LoadedSchema | None, fragment: LoadedSchema, *, table: Table, key: str
) -> LoadedSchema:
    """Add the fields of a fragment to a schema; where both have one, its own stays.

    Without a schema the fragment is the schema. Only objects have fields to add.
    """
    if schema is None or schema.schema is None or fragment.schema is None:
        return fragment
    own, added = _opened(schema.schema), _opened(fragment.schema)
    problem = _problem(own, added, key)
    if problem is not None:
        table.report("GD056", "error", problem, key=key)
        return schema
    merged = _merged(own, added)
    return LoadedSchema(schema=merged, source=schema.source)


def _problem(schema: Schema, fragment: Schema, key: str) -> str | None:
    for whose, each in (("the deck's schema", schema), ("it", fragment)):
        if each.get("type") != "object":
            return f"{key} can only add fields to an object, and {whose} is not one."
    own, added = _definitions(schema), _definitions(fragment)
    clashes = [n for n in sorted(own.keys() & added.keys()) if own[n] != added[n]]
    if clashes:
        names = ", ".join(clashes)
        return f"The deck's schema and the snippet's both define {names}; rename one."
    return None


def _opened(schema: Schema) -> Schema:
    """A schema without a reference at its top, as a Python type has one."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    target = resolve(schema, reference)
    if not isinstance(target, dict):
        return schema
    around = {key: part for key, part in schema.items() if key != "$ref"}
    return around | target


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
