"""Puts together what the other packages make: model servers, plugins, a runtime.

Nothing imports this package but the command line and `gambit_actors` itself.
"""
