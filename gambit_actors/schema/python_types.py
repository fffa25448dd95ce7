"""JSON Schema from a Python type: msgspec Struct, dataclass, TypedDict or attrs.

Finding the type means importing a module, which is for the caller to do.
"""

from typing import Any, TypeAlias

import msgspec

from gambit_actors.errors import SchemaError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.keywords import Schema

PythonType: TypeAlias = Any
"""A class, or any other annotation that msgspec knows, such as ``list[Order]``."""


def schema_from_type(kind: PythonType) -> Schema:
    """Describe what a Python type looks like as JSON.

    Raises:
        SchemaError: the type, or one inside it, has no JSON form.
    """
    name = getattr(kind, "__name__", repr(kind))
    try:
        schema: JSONValue = msgspec.json.schema(kind)
    except (TypeError, ValueError, NameError, RecursionError) as problem:
        raise SchemaError("", f"{name} has no JSON Schema: {problem}") from problem
    return dict(schema)
