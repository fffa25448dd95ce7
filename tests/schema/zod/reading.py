"""What the tests of the Zod reader share: short ways to read a module."""

from collections.abc import Mapping

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.zod import ZodModule, read_zod

IMPORT = 'import { z } from "npm:zod";\n'
FILE = "deck/schema.zod.ts"


def read(text: str, files: Mapping[str, str] | None = None) -> ZodModule:
    """Read a module that may import others of the same folder."""
    others = {f"deck/{name}": content for name, content in (files or {}).items()}
    return read_zod(text, file=FILE, read_file=others.get)


def schema_of(expression: str, *, before: str = "") -> JSONValue:
    """The JSON Schema of one expression, which must raise no finding."""
    module = read(f"{IMPORT}{before}\nexport default {expression};\n")
    assert module.diagnostics == ()
    return module.schema


def codes(module: ZodModule) -> list[str]:
    """The codes of everything found."""
    return [finding.code for finding in module.diagnostics]


def stripping(
    properties: dict[str, JSONValue], required: list[str] | None = None
) -> JSONValue:
    """The schema of a plain object, all of whose keys are required unless told."""
    names = list(properties) if required is None else required
    return {
        "type": "object",
        "properties": properties,
        **({"required": names} if names else {}),
        "additionalProperties": False,
        "x-gambit-unknownKeys": "strip",
    }
