"""What a server did against its own dialect, as readers keep it."""

_MOST = 100
_CHARACTERS = 300


class Problems(list[str]):
    """One sentence for each problem, and as many as help.

    A server can make as many problems as it sends bytes.
    """

    def note(self, problem: str) -> None:
        """Keep one more."""
        if len(self) < _MOST:
            self.append(problem[:_CHARACTERS])
