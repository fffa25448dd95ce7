"""Schemas: three notations in, one JSON Schema (2020-12) out, values checked by it.

`zod` reads ``.zod.ts`` modules without running them; `diagnostics` is how every
reader here explains a mistake. Nothing in this package does I/O: texts are handed in,
and what stands beside them is asked for through a function.
"""
