"""``python -m gambit_actors`` is ``gambit``."""

from gambit_actors.cli.starting import main

main()
