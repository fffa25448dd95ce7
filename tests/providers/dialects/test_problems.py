"""What readers keep of a server's mistakes."""

from gambit_actors.providers.dialects.problems import Problems


def test_a_server_that_does_everything_wrong_fills_no_memory() -> None:
    """A hundred problems are kept, and as much of each as a person reads."""
    problems = Problems()

    for _ in range(1000):
        problems.note("x" * 1000)

    assert list(problems) == ["x" * 300] * 100
