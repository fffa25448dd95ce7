"""``python -m gambit_actors`` is ``gambit``."""

from gambit_actors.cli.main import main

main(prog_name="gambit")
