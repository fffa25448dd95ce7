"""The tree of exceptions is the one that is documented."""

import re

import pytest

from gambit_actors import errors
from gambit_actors.errors import (
    BadRequest,
    BadResponse,
    EventTooLarge,
    GambitError,
    StreamTruncated,
    WireError,
)

_LINE = re.compile(
    r"^    (?P<branch>[│ ├└─]*)(?P<name>[A-Z]\w+)(?:  +(?P<gloss>\S.*))?$"
)

CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, GambitError)
}


def documented_tree(docstring: str) -> dict[str, str | None]:
    """Read the drawn tree: each class and the one it hangs from."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in docstring.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        depth = len(match["branch"]) // len("├── ")
        path = [*path[:depth], match["name"]]
        parents[match["name"]] = path[depth - 1] if depth else None
    return parents


def test_the_reader_of_the_tree_reads_trees() -> None:
    """A drawn tree gives each name its parent, at any depth."""
    drawn = """Errors.

    Root
    ├── Left        of the left
    │   └── Leaf    of the left
    └── Right       of the right
        └── Twig    of the right
    """
    assert documented_tree(drawn) == {
        "Root": None,
        "Left": "Root",
        "Leaf": "Left",
        "Right": "Root",
        "Twig": "Right",
    }


def test_every_class_is_in_the_documented_tree() -> None:
    """The docstring's tree names all exceptions and no others."""
    assert documented_tree(errors.__doc__ or "").keys() == CLASSES.keys()


def test_the_documented_tree_is_the_real_one() -> None:
    """Each class derives directly from the one it is drawn under."""
    tree = documented_tree(errors.__doc__ or "")
    assert tree
    drawn = {name: parent for name, parent in tree.items() if parent is not None}
    real = {name: {base.__name__ for base in CLASSES[name].__bases__} for name in drawn}
    assert {n: p for n, p in drawn.items() if p not in real[n]} == {}
    assert tree["GambitError"] is None
    assert GambitError.__bases__ == (Exception,)


def test_all_lists_every_class() -> None:
    """``__all__`` is the sorted list of the exceptions."""
    assert sorted(errors.__all__) == sorted(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_docstrings_begin_with_one_sentence(name: str) -> None:
    """The first line of each class says in one sentence what has happened."""
    kind = CLASSES[name]
    first = (kind.__doc__ or "").splitlines()[0]
    assert kind.__doc__ != (kind.__base__.__doc__ if kind.__base__ else None)
    assert first[:1].isupper()
    assert first.endswith(".")
    assert ". " not in first


def test_a_wire_error_names_the_place() -> None:
    """A path stands before the problem; the whole document has none."""
    assert str(WireError("input[2]", "no such thing")) == "input[2]: no such thing"
    assert str(WireError("", "no such thing")) == "no such thing"
    fault = WireError("input[2]", "no such thing")
    assert (fault.path, fault.problem) == ("input[2]", "no such thing")


@pytest.mark.parametrize(
    ("kind", "side"),
    [(BadRequest, errors.RequestError), (BadResponse, errors.ProviderError)],
)
def test_a_bad_document_is_somebodys_fault(
    kind: type[WireError], side: type[GambitError]
) -> None:
    """A bad request is the caller's, a bad response the provider's; both are wire."""
    fault = kind("a", "b")
    assert isinstance(fault, WireError)
    assert isinstance(fault, side)


def test_facts_are_attributes() -> None:
    """What a handler has to know stands in attributes and in the message."""
    assert EventTooLarge(7).limit_bytes == 7
    assert "7 bytes" in str(EventTooLarge(7))
    assert StreamTruncated(3).events_seen == 3
    assert "3 events" in str(StreamTruncated(3))
