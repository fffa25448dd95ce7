"""Which models there are and how to reach them: read from the environment and a file.

Nothing below this package looks at the environment or at ``gambit.toml``. What is found
becomes one `Settings`, a plain value that holds no connection and has opened none.
"""
