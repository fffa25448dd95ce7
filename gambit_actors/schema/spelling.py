"""Keywords of a JSON Schema that say nothing, because they are not spelled right.

JSON Schema ignores what it does not know, so ``requird`` makes a field optional without
a word. What is close to a keyword, and a schema without any, is worth a warning.
"""

import difflib
from collections.abc import Iterator

from gambit_actors.schema.keywords import Schema, Step, walk

_CLOSE = 0.85
_LONGEST = 40
_MOST_PARTS = 2_000
_KEYWORDS = frozenset(
    [
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$ref",
        "$schema",
        "$vocabulary",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "deprecated",
        "description",
        "discriminator",
        "else",
        "enum",
        "example",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "nullable",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "readOnly",
        "required",
        "then",
        "title",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "writeOnly",
    ]
)


def unheard_keywords(schema: Schema) -> Iterator[tuple[Step, str, str | None]]:
    """Find what was meant as a keyword: where, the word, and what it may have been.

    The word is empty for a schema that has no keyword at all.
    """
    if schema and not any(_is_keyword(key) for key in schema):
        yield (), "", None
        return
    for count, (step, part) in enumerate(walk(schema)):
        if count > _MOST_PARTS:
            return
        for key in part.keys() - _KEYWORDS:
            guess = None if len(key) > _LONGEST else _guess(key)
            if guess is not None:
                yield (*step, key), key, guess


def _guess(key: str) -> str | None:
    close = difflib.get_close_matches(key, _KEYWORDS, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def _is_keyword(key: str) -> bool:
    return key in _KEYWORDS or key.startswith("x-")
