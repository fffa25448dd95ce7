"""Zod modules read as data: TypeScript text in, JSON Schema and diagnostics out.

Nothing is run. `syntax` parses, `modules` knows what a file declares, imports and
exports, `values` works out the expressions a schema is made of, `constructors`,
`methods`, `objects` and `checks` know Zod, and `emitting` writes JSON Schema.
`session` keeps the bounds that make any text safe to read.
"""

from gambit_actors.schema.zod.reading import ZodModule, read_zod

__all__ = ["ZodModule", "read_zod"]
