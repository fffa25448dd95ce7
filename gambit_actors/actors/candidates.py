"""Which models are asked for the names that a deck gives, in which order."""

from gambit_actors.run.ports import Candidate, ModelDirectory, ModelProvider


class Candidates:
    """Looks names of models up, once for each list of them.

    Args:
        provider: who is asked. One that is no directory takes names as they are.
    """

    def __init__(self, provider: ModelProvider) -> None:
        self._directory: ModelDirectory | None = None
        if isinstance(provider, ModelDirectory):
            self._directory = provider
        self._known: dict[tuple[str, ...], tuple[Candidate, ...]] = {}

    def of(self, names: tuple[str, ...]) -> tuple[Candidate, ...]:
        """The models behind these names, each once, in the order in which to ask."""
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = tuple(self._look_up(names))
        return found

    def _look_up(self, names: tuple[str, ...]) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for name in names:
            candidates = (
                [Candidate(model=name)]
                if self._directory is None
                else self._directory.candidates(name)
            )
            for candidate in candidates:
                # To ask again who has just failed helps nobody.
                found.setdefault(candidate.model, candidate)
        return list(found.values())
