"""The methods of objects, which make new objects out of old ones."""

import msgspec

from gambit_actors.schema.zod.calls import Call
from gambit_actors.schema.zod.checks import Method
from gambit_actors.schema.zod.model import UnknownKeys, ZodType
from gambit_actors.schema.zod.operators import is_truthy


def _extend(call: Call, schema: ZodType) -> ZodType:
    return msgspec.structs.replace(schema, shape=schema.shape | call.shape())


def _merge(call: Call, schema: ZodType) -> ZodType:
    """The other object wins, in its keys and in what it does with unknown ones."""
    other = call.schema()
    if other.kind != "object":
        call.refuse_argument(0, "an object schema")
    return msgspec.structs.replace(
        schema,
        shape=schema.shape | other.shape,
        unknown_keys=other.unknown_keys,
        rest=other.rest,
    )


def _mask(call: Call, schema: ZodType) -> set[str]:
    """The keys a mask such as ``{ name: true }`` picks out."""
    mask = call.mapping()
    for key in mask:
        if key not in schema.shape:
            message = f"The object has no key {key!r}; correct the name."
            known = ", ".join(list(schema.shape)[:10])
            hint = f"Its keys are: {known}." if known else None
            call.session.error("GS008", message, call.at(0), hint=hint)
    return {key for key, value in mask.items() if is_truthy(value)}


def _choose(call: Call, schema: ZodType) -> ZodType:
    keys = _mask(call, schema)
    wanted = call.name == "pick"
    shape = {k: v for k, v in schema.shape.items() if (k in keys) == wanted}
    return msgspec.structs.replace(schema, shape=shape)


def _optionality(call: Call, schema: ZodType) -> ZodType:
    """``partial`` and ``required``, of all keys or of those in a mask."""
    keys = _mask(call, schema) if call.nodes else set(schema.shape)
    is_optional = call.name == "partial"
    shape = {
        key: msgspec.structs.replace(value, is_optional=is_optional)
        if key in keys
        else value
        for key, value in schema.shape.items()
    }
    return msgspec.structs.replace(schema, shape=shape)


def _deep_partial(call: Call, schema: ZodType) -> ZodType:
    # Schemas are never deep (the session sees to that), so this may recurse; but one
    # schema can stand in many places, so every visit is charged.
    call.session.charge(schema.width, call.spot)
    shape = {
        key: msgspec.structs.replace(_deep_partial(call, value), is_optional=True)
        for key, value in schema.shape.items()
    }
    items = schema.items
    if schema.kind in {"array", "tuple"}:
        items = tuple(_deep_partial(call, item) for item in items)
    return msgspec.structs.replace(schema, shape=shape, items=items)


def _unknown(policy: UnknownKeys) -> Method:
    def change(_call: Call, schema: ZodType) -> ZodType:
        return msgspec.structs.replace(schema, unknown_keys=policy, rest=None)

    return change


def _catchall(call: Call, schema: ZodType) -> ZodType:
    return msgspec.structs.replace(schema, rest=call.schema())


def key_schema(_call: Call, schema: ZodType) -> ZodType:
    """The schema of an object's keys."""
    if not schema.shape:
        return ZodType(kind="never")
    return ZodType(kind="enum", keywords={"enum": list(schema.shape)})


OBJECT_METHODS: dict[str, Method] = {
    "augment": _extend,
    "catchall": _catchall,
    "deepPartial": _deep_partial,
    "extend": _extend,
    "keyof": key_schema,
    "loose": _unknown("allow"),
    "merge": _merge,
    "nonstrict": _unknown("strip"),
    "omit": _choose,
    "partial": _optionality,
    "passthrough": _unknown("allow"),
    "pick": _choose,
    "required": _optionality,
    "safeExtend": _extend,
    "strict": _unknown("refuse"),
    "strip": _unknown("strip"),
}
"""The methods only objects have."""
