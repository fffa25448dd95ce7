"""From the text of a Zod module to its schema and what there is to say about it."""

from collections.abc import Callable

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.diagnostics import Diagnostic
from gambit_actors.schema.zod.emitting import Emitter
from gambit_actors.schema.zod.model import BAD, Value, ZodType
from gambit_actors.schema.zod.modules import Module, Modules
from gambit_actors.schema.zod.session import Exhausted, Refused, Session, Spot
from gambit_actors.schema.zod.syntax import Source


class ZodModule(msgspec.Struct, frozen=True, kw_only=True):
    """A Zod module as data.

    Attributes:
        schema: JSON Schema 2020-12 of the default export; None if there was an error.
        diagnostics: everything found, in the order it was met.
        exports: the schemas of the other exports, those that can be read. The rest
            is left out without a word, since nobody may need it: a file may export
            code as well. A module that imports one of these gets the finding.
    """

    schema: dict[str, JSONValue] | None
    diagnostics: tuple[Diagnostic, ...] = ()
    exports: dict[str, dict[str, JSONValue]] = {}


def read_zod(
    text: str, *, file: str, read_file: Callable[[str], str | None]
) -> ZodModule:
    """Read a Zod module without running it.

    Args:
        text: the TypeScript of the module.
        file: its posix path, from which relative imports start.
        read_file: gives the text of another file by its path, None if it has none.
    """
    session = Session()
    modules = Modules(session, read_file)
    schema: dict[str, JSONValue] | None = None
    exports: dict[str, dict[str, JSONValue]] = {}
    module: Module | None = None
    try:
        module = modules.load(file, text)
        if module is not None:
            schema = _default_schema(session, modules, module)
            exports = _named_schemas(session, modules, module)
    except Exhausted:
        pass
    except RecursionError:
        # The session's bound on depth comes first, unless the caller is deep already.
        source = module.source if module is not None else Source(file, "")
        message = "The module nests too deeply to be read; flatten it."
        session.error("GS012", message, Spot(source, source.root))
    if session.has_errors:
        schema = None
    return ZodModule(
        schema=schema,
        diagnostics=tuple(session.diagnostics),
        exports=exports,
    )


def _default_schema(
    session: Session, modules: Modules, module: Module
) -> dict[str, JSONValue] | None:
    spot = Spot(module.source, module.source.root)
    if "default" not in module.exports:
        names = ", ".join(list(module.exports)[:10])
        message = (
            "The module has no default export; add `export default` with a schema."
        )
        hint = f"It exports: {names}." if names else None
        session.error("GS002", message, spot, hint=hint)
        return None
    value = _exported(modules, module, "default")
    if isinstance(value, ZodType):
        return Emitter(session, spot).document(value)
    if value is not BAD:
        message = "The default export is not a Zod schema; export one."
        session.error("GS003", message, Spot(module.source, module.default_node))
    return None


def _named_schemas(
    session: Session, modules: Modules, module: Module
) -> dict[str, dict[str, JSONValue]]:
    """The other exports that are schemas; the rest is none of our business."""
    schemas: dict[str, dict[str, JSONValue]] = {}
    spot = Spot(module.source, module.source.root)
    for name in module.exports:
        if name == "default":
            continue
        with session.muted() as trial:
            value = _exported(modules, module, name)
            if isinstance(value, ZodType):
                schema = Emitter(session, spot).document(value)
                if not trial.has_errors:
                    schemas[name] = schema
    return schemas


def _exported(modules: Modules, module: Module, name: str) -> Value:
    try:
        return modules.find_export(
            module, name, Spot(module.source, module.source.root)
        )
    except Refused:
        return BAD
