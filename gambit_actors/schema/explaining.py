"""What a validator found, in words that a person can act on.

One complaint of the validator becomes one or more `Problem` values: where in the
value, and what is wrong there. A union that fits nowhere is the hard case: the
alternatives that the value was clearly not meant to be are set aside, and if one is
left, its problems are the ones to tell.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import jsonschema_rs
import msgspec
from jsonschema_rs import ValidationErrorKind as Kind

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.describing import shown

_SHOWN_CHOICES = 12
_SHOWN_ALTERNATIVES = 3

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

_FORMATS = {
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T12:00:00Z",
    "duration": "a duration such as PT5M",
    "email": "an e-mail address",
    "hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "json-pointer": "a JSON pointer",
    "regex": "a regular expression that this library runs (no look-around)",
    "time": "a time such as 12:00:00Z",
    "uri": "a URL",
    "uri-reference": "a URL or a part of one",
    "uuid": "a UUID",
}

_Found: TypeAlias = jsonschema_rs.ValidationError


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a value.

    Attributes:
        path: where, such as ``order.items[2].sku``; empty for the whole value.
        message: what is wrong there.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def problems_from(found: Iterable[_Found]) -> tuple[Problem, ...]:
    """Say all that a validator found, each thing once."""
    told = (problem for complaint in found for problem in _explained(complaint))
    return tuple(dict.fromkeys(told))


def type_words(types: Iterable[str]) -> str:
    """Names of JSON types, as a person would say them."""
    words = [_TYPES.get(name, name) for name in types]
    return _either(words) if words else "nothing"


def path_from(keys: Iterable[str | int]) -> str:
    """Write the keys to a place as a path."""
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        elif key and not set(key) & set('.[]" \n\t'):
            path += f".{key}" if path else key
        else:
            path += f"[{shown(key)}]"
    return path


def _explained(found: _Found) -> list[Problem]:
    kind = found.kind
    if isinstance(kind, (Kind.AnyOf, Kind.OneOfNotValid)):
        return _union_problems(found, kind.context)
    return [Problem(path=path_from(found.instance_path), message=_message(found))]


def _message(found: _Found) -> str:
    keyword = found.schema_path[-1] if found.schema_path else ""
    if isinstance(found.kind, Kind.Contains):
        return _contains_message(str(keyword))
    say = _MESSAGES.get(type(found.kind))
    # A kind that a newer release of the validator adds still has its own words.
    return found.message if say is None else say(found.kind, found.instance)


def _contains_message(keyword: str) -> str:
    if keyword == "maxContains":
        return "too many entries are of the form that only some may have"
    return "too few entries are of the form that some must have"


def _expected(words: str, value: JSONValue) -> str:
    return f"expected {words}, got {shown(value)}"


def _count_message(limit: int, unit: str, bound: str, got: int) -> str:
    units = {"entry": "entries"}.get(unit, unit + "s")
    return f"expected at {bound} {limit} {unit if limit == 1 else units}, got {got}"


def _length_message(kind: Kind, value: JSONValue) -> str:
    bound = "least" if kind.name.startswith("min") else "most"
    unit = {"Length": "character", "Items": "entry"}.get(kind.name[3:], "key")
    return _count_message(kind.as_dict()["limit"], unit, bound, len(value))


def _keys_message(kind: Kind, _value: JSONValue) -> str:
    keys = [str(key) for key in kind.as_dict()["unexpected"]]
    names = ", ".join(map(repr, keys[:_SHOWN_CHOICES]))
    if len(keys) > _SHOWN_CHOICES:
        names += f" and {len(keys) - _SHOWN_CHOICES} more"
    many = len(keys) != 1
    return f"the key{'s' if many else ''} {names} {'are' if many else 'is'} not allowed"


def _choice_message(options: Sequence[JSONValue], value: JSONValue) -> str:
    words = [shown(option) for option in options[:_SHOWN_CHOICES]]
    if len(options) > _SHOWN_CHOICES:
        words.append(f"{len(options) - _SHOWN_CHOICES} more")
    lead = "" if len(words) == 1 else "one of "
    return _expected(lead + ", ".join(words), value)


def _name_message(kind: Kind, _value: JSONValue) -> str:
    error = kind.as_dict()["error"]
    return f"the key {shown(error.instance)} is not allowed: {_message(error)}"


_MESSAGES: dict[type[Kind], Callable[..., str]] = {
    Kind.AdditionalItems: lambda k, _: f"only the first {k.limit} entries are allowed",
    Kind.AdditionalProperties: _keys_message,
    Kind.Constant: lambda k, v: _choice_message([k.expected_value], v),
    Kind.Enum: lambda k, v: _choice_message(k.options, v),
    Kind.ExclusiveMaximum: lambda k, v: _expected(f"less than {k.limit}", v),
    Kind.ExclusiveMinimum: lambda k, v: _expected(f"more than {k.limit}", v),
    Kind.FalseSchema: lambda _, v: f"nothing is allowed here, got {shown(v)}",
    Kind.Format: lambda k, v: _expected(_FORMATS.get(k.format, k.format), v),
    Kind.MaxItems: _length_message,
    Kind.MaxLength: _length_message,
    Kind.MaxProperties: _length_message,
    Kind.Maximum: lambda k, v: _expected(f"at most {k.limit}", v),
    Kind.MinItems: _length_message,
    Kind.MinLength: _length_message,
    Kind.MinProperties: _length_message,
    Kind.Minimum: lambda k, v: _expected(f"at least {k.limit}", v),
    Kind.MultipleOf: lambda k, v: _expected(f"a multiple of {k.multiple_of}", v),
    Kind.Not: lambda _, v: f"{shown(v)} is of a form that is ruled out here",
    Kind.OneOfMultipleValid: lambda _, v: (
        f"{shown(v)} fits more than one of the forms, and must fit one only"
    ),
    Kind.Pattern: lambda k, v: _expected(f"text that matches {shown(k.pattern)}", v),
    Kind.PropertyNames: _name_message,
    Kind.Referencing: lambda k, _: str(k.error),
    Kind.Required: lambda k, _: f"the key {k.property!r} is missing",
    Kind.Type: lambda k, v: _expected(type_words(k.types), v),
    Kind.UnevaluatedItems: lambda k, _: (
        f"{len(k.unexpected)} more entries than are allowed"
    ),
    Kind.UnevaluatedProperties: _keys_message,
    Kind.UniqueItems: lambda _, v: f"two entries of {shown(v)} are the same",
}


# --- unions -------------------------------------------------------------------


def _union_problems(found: _Found, context: list[list[_Found]]) -> list[Problem]:
    branches = [_flat(branch) for branch in context]
    here = list(found.instance_path)
    path = path_from(here)
    types = [_wrong_type(branch, here) for branch in branches]
    meant = [b for b, wrong in zip(branches, types, strict=True) if not wrong]
    if not meant:
        words = type_words(dict.fromkeys(name for names in types for name in names))
        return [Problem(path=path, message=_expected(words, found.instance))]
    if (choices := _choices(meant)) is not None:
        place, options, value = choices
        message = _choice_message(options, value)
        return [Problem(path=path_from(place), message=message)]
    # A wrong constant is how a union says "this is another of my forms".
    meant = [b for b in meant if not any(map(_is_tag, b))] or meant
    if len(meant) == 1:
        return list(problems_from(meant[0]))
    return [Problem(path=path, message=_alternatives(meant, here))]


def _flat(branch: list[_Found]) -> list[_Found]:
    """A branch's complaints; a union directly inside a branch of one is one union."""
    if len(branch) == 1 and isinstance(branch[0].kind, Kind.AnyOf):
        inner = branch[0].kind.context
        if len(inner) == 1:
            return _flat(inner[0])
    return branch


def _wrong_type(branch: list[_Found], here: list[str | int]) -> list[str]:
    """The types a branch asked for, if the value's type alone rules it out."""
    for complaint in branch:
        if isinstance(complaint.kind, Kind.Type) and complaint.instance_path == here:
            return complaint.kind.types
    return []


def _is_tag(complaint: _Found) -> bool:
    return isinstance(complaint.kind, Kind.Constant)


def _choices(
    branches: list[list[_Found]],
) -> tuple[list[str | int], list[JSONValue], JSONValue] | None:
    """The constants to choose from, if all branches miss one at the same place."""
    options: list[JSONValue] = []
    places: list[_Found] = []
    for branch in branches:
        tags = [c for c in branch if isinstance(c.kind, (Kind.Constant, Kind.Enum))]
        if not tags or (places and tags[0].instance_path != places[0].instance_path):
            return None
        places.append(tags[0])
        told = tags[0].kind.as_dict()
        found = told["options"] if "options" in told else [told["expected_value"]]
        options += [option for option in found if option not in options[-64:]]
    return (places[0].instance_path, options, places[0].instance) if places else None


def _alternatives(branches: list[list[_Found]], here: list[str | int]) -> str:
    # The ones with the fewest complaints are the likeliest to have been meant.
    closest = sorted(branches, key=len)[:_SHOWN_ALTERNATIVES]
    told = ["; ".join(_relative(c, here) for c in branch[:2]) for branch in closest]
    more = len(branches) - len(closest)
    if more:
        told.append(f"{more} more")
    return f"fits none of {len(branches)} forms: {' | '.join(told)}"


def _relative(complaint: _Found, here: list[str | int]) -> str:
    inner = complaint.instance_path[len(here) :]
    words = _explained(complaint)[0].message
    return f"{path_from(inner)}: {words}" if inner else words


def _either(words: list[str]) -> str:
    return " or ".join(dict.fromkeys(words))
