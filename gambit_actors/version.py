"""Which release this is. Packaging reads it too, so it is said once."""

VERSION = "0.1.0.dev0"

IS_STABLE = int(VERSION.partition(".")[0]) >= 1
"""Whether this is 1.0.0 or later, from where on deprecated spellings are errors."""
