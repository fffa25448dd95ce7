"""JSON Schema from a Python type: msgspec Struct, dataclass, TypedDict or attrs.

Finding the type means importing a module, which is for the caller to do: in another
process, since a module is the author's code. So what comes from there is a
`DescribedType`, which is data and not a type.
"""

import re
from typing import Any, Protocol, TypeAlias

import msgspec

from gambit_actors.errors import SchemaError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.keywords import Schema

PythonType: TypeAlias = Any
"""A class, or any other annotation that msgspec knows, such as ``list[Order]``."""


class DescribedType(msgspec.Struct, frozen=True, kw_only=True):
    """What a Python type looks like as JSON.

    Attributes:
        schema: JSON Schema 2020-12.
        files: the files it was made from besides its own: what its module imports
            from near it. A change in one of them may change the schema.
    """

    schema: Schema
    files: tuple[str, ...] = ()


class DescribeType(Protocol):
    """Imports a module somewhere and describes a type in it."""

    def __call__(self, path: str, name: str, /) -> DescribedType:
        """Describe a type.

        Raises:
            LookupError: there is no such type, or its module cannot be imported; the
                message says why.
            SchemaError: there is one, and it has no JSON form.
        """


def schema_from_type(kind: PythonType) -> Schema:
    """Describe what a Python type looks like as JSON.

    Raises:
        SchemaError: the type, or one inside it, has no JSON form.
    """
    name = getattr(kind, "__name__", repr(kind))
    try:
        schema: JSONValue = msgspec.json.schema(kind)
    except (TypeError, ValueError, NameError, RecursionError) as problem:
        message = f"{name} has no JSON Schema: {_reason(problem)}"
        raise SchemaError("", message) from problem
    return dict(schema)


def _reason(problem: Exception) -> str:
    """What a type is missing, without msgspec's advice to those who call msgspec."""
    foreign = re.search(
        r"type (<class '(?P<name>[^']+)'>|\S+) is not supported", str(problem)
    )
    if foreign is None:
        return str(problem)
    name = (foreign["name"] or foreign[1]).rpartition(".")[2]
    return (
        f"{name} is not a type that JSON has; use a msgspec Struct, a dataclass, a"
        " TypedDict or an attrs class"
    )
