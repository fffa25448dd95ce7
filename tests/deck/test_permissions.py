"""Permissions are only ever narrowed, and say the same whichever way they are asked."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gambit_actors.deck.permissions import (
    EVERYTHING,
    NOTHING,
    Permissions,
    RunAccess,
    child_permissions,
    excess,
    from_json,
    intersection,
    is_within,
    root_permissions,
    to_json,
)
from tests.deck.permission_sets import (
    Check,
    checks,
    host_sets,
    maybe_sets,
    reaching,
    reading,
    seeing,
    sets,
    witnesses,
)

# --- a child and its parent ------------------------------------------------------


@pytest.mark.spec("DK-34")
@pytest.mark.slow
@given(sets, maybe_sets, maybe_sets)
def test_child_never_gains(
    parent: Permissions, declaration: Permissions | None, reference: Permissions | None
) -> None:
    """Whatever is declared or referred to, a child is within its parent."""
    child = child_permissions(parent, declaration=declaration, reference=reference)

    assert is_within(child.effective, parent)


@pytest.mark.spec("DK-34")
@pytest.mark.slow
@given(sets, maybe_sets, maybe_sets, checks)
def test_child_can_do_nothing_its_parent_can_not(
    parent: Permissions,
    declaration: Permissions | None,
    reference: Permissions | None,
    check: Check,
) -> None:
    """What a child is allowed when asked, its parent is allowed too."""
    child = child_permissions(parent, declaration=declaration, reference=reference)

    assert check(parent) or not check(child.effective)


@pytest.mark.spec("DK-34")
@pytest.mark.slow
@given(sets, st.lists(st.tuples(maybe_sets, maybe_sets), max_size=4))
def test_descendants_never_gain(
    root: Permissions, calls: list[tuple[Permissions | None, Permissions | None]]
) -> None:
    """However deep decks call each other, no one has more than the first."""
    allowed = root
    for declaration, reference in calls:
        allowed = child_permissions(
            allowed, declaration=declaration, reference=reference
        ).effective

    assert is_within(allowed, root)


@pytest.mark.spec("DK-34")
@pytest.mark.slow
@given(sets)
def test_silent_child_has_what_its_parent_has(parent: Permissions) -> None:
    """A child without declaration and reference has the parent's set, unchanged."""
    child = child_permissions(parent)

    assert child.effective == parent
    assert [layer.name for layer in child.layers] == ["parent"]


@pytest.mark.spec("DK-34")
def test_child_in_a_sub_folder_narrows_to_it() -> None:
    """A child that asks for its own folder inside its parent's gets that folder."""
    parent = Permissions(read=("/deck",))

    child = child_permissions(parent, declaration=Permissions(read=("/deck/data",)))

    assert child.effective == Permissions(read=("/deck/data",))


@pytest.mark.spec("DK-34")
def test_each_kind_is_narrowed_by_a_reference() -> None:
    """A reference narrows every kind, and denies the kinds it does not name."""
    parent = Permissions(
        read=("/a",), write=True, net=True, env=("A*",), run=RunAccess(commands=("ls",))
    )
    reference = Permissions(read=("/a/b", "/c"), net=("x.com",), env=("AB",), run=True)

    child = child_permissions(parent, reference=reference)

    assert child.effective == Permissions(
        read=("/a/b",), net=("x.com",), env=("AB",), run=RunAccess(commands=("ls",))
    )


# --- layers ----------------------------------------------------------------------


@pytest.mark.spec("DK-34")
@pytest.mark.slow
@given(st.lists(sets, min_size=4, max_size=4))
def test_order_of_layers_does_not_matter(layers: list[Permissions]) -> None:
    """The same sets in any order of layers leave the same set."""
    effective = {
        root_permissions(
            declaration, workspace=workspace, reference=reference, run=run
        ).effective
        for declaration, workspace, reference, run in itertools.permutations(layers)
    }

    assert len(effective) == 1


@pytest.mark.slow
@given(sets, maybe_sets, maybe_sets, maybe_sets)
def test_root_is_within_every_layer(
    declaration: Permissions,
    workspace: Permissions | None,
    reference: Permissions | None,
    run: Permissions | None,
) -> None:
    """What a root deck may do, each layer allows; what they all allow, it may do."""
    root = root_permissions(
        declaration, workspace=workspace, reference=reference, run=run
    )
    present = [
        layer for layer in (declaration, workspace, reference, run) if layer is not None
    ]

    assert all(is_within(root.effective, layer) for layer in present)
    for check in (check for layer in present for check in witnesses(layer)):
        assert check(root.effective) == all(check(layer) for layer in present)


@pytest.mark.spec("DK-34")
@pytest.mark.slow
@given(sets, maybe_sets, maybe_sets, maybe_sets)
def test_a_further_layer_never_widens(
    declaration: Permissions,
    workspace: Permissions | None,
    reference: Permissions | None,
    run: Permissions | None,
) -> None:
    """Each layer leaves at most what the one before it left."""
    full = root_permissions(
        declaration, workspace=workspace, reference=reference, run=run
    )

    for before, after in itertools.pairwise(full.layers):
        assert is_within(after.effective, before.effective)
    assert full.layers[-1].effective == full.effective
    assert is_within(full.effective, root_permissions(declaration).effective)


@pytest.mark.slow
@given(maybe_sets, maybe_sets, maybe_sets)
def test_root_without_declaration_gets_nothing(
    workspace: Permissions | None,
    reference: Permissions | None,
    run: Permissions | None,
) -> None:
    """No other layer can grant what the deck did not declare."""
    root = root_permissions(None, workspace=workspace, reference=reference, run=run)

    assert root.effective == NOTHING


def test_root_without_declaration_shows_why() -> None:
    """The layers of a deck that declares nothing show where all was lost."""
    root = root_permissions(None, workspace=EVERYTHING)

    assert [
        (layer.name, layer.requested, layer.effective) for layer in root.layers
    ] == [
        ("host", EVERYTHING, EVERYTHING),
        ("workspace", EVERYTHING, EVERYTHING),
        ("declaration", None, NOTHING),
    ]


@pytest.mark.spec("DK-34")
def test_layers_are_told_in_order() -> None:
    """A resolution lists the layers that were there, each with what it left."""
    declaration = Permissions(read=("/w",), net=True)
    run = Permissions(read=("/w/deck", "/tmp"))  # noqa: S108  (a name, not a file)

    root = root_permissions(declaration, workspace=EVERYTHING, run=run)

    assert [(layer.name, layer.effective) for layer in root.layers] == [
        ("host", EVERYTHING),
        ("workspace", EVERYTHING),
        ("declaration", declaration),
        ("run", Permissions(read=("/w/deck",))),
    ]
    assert root.layers[-1].requested == run


def test_present_layer_denies_what_it_omits() -> None:
    """An empty layer denies every kind; an absent one changes nothing."""
    declaration = Permissions(read=True, net=("x.com",))

    assert root_permissions(declaration).effective == declaration
    assert root_permissions(declaration, workspace=NOTHING).effective == NOTHING


# --- intersection ----------------------------------------------------------------


@pytest.mark.slow
@given(sets, sets, checks)
def test_intersection_allows_exactly_what_both_allow(
    left: Permissions, right: Permissions, check: Check
) -> None:
    """A thing is allowed by the intersection if and only if both sets allow it."""
    assert check(intersection(left, right)) == (check(left) and check(right))


@pytest.mark.slow
@given(sets, sets)
def test_intersection_keeps_what_both_allow(
    left: Permissions, right: Permissions
) -> None:
    """Nothing that is typical of one set is lost or gained by intersecting."""
    both = intersection(left, right)

    for check in [*witnesses(left), *witnesses(right), *witnesses(both)]:
        assert check(both) == (check(left) and check(right))


@pytest.mark.slow
@settings(max_examples=300)
@given(host_sets, host_sets)
def test_intersection_of_hosts_is_exact(left: Permissions, right: Permissions) -> None:
    """Hosts and ports, which can cross, are shared exactly where both allow them."""
    both = intersection(left, right)

    for host, port in itertools.product(("a.b", "b", "c.a.b", "::1"), (80, 443, 9)):
        expected = left.can_reach(host, port) and right.can_reach(host, port)
        assert both.can_reach(host, port) == expected


@pytest.mark.slow
@given(sets, sets, sets)
def test_intersection_is_a_meet(
    first: Permissions, second: Permissions, third: Permissions
) -> None:
    """Intersecting is associative, commutative and idempotent, with two ends."""
    assert intersection(first, first) == first
    assert intersection(first, second) == intersection(second, first)
    assert intersection(intersection(first, second), third) == intersection(
        first, intersection(second, third)
    )
    assert intersection(first, EVERYTHING) == first
    assert intersection(first, NOTHING) == NOTHING


@pytest.mark.slow
@given(sets, sets, sets)
def test_intersection_is_the_largest_within_both(
    left: Permissions, right: Permissions, other: Permissions
) -> None:
    """A set is within the intersection if and only if it is within both."""
    both = intersection(left, right)

    assert is_within(other, both) == (
        is_within(other, left) and is_within(other, right)
    )
    assert is_within(both, left)
    assert is_within(both, right)


# --- containment -----------------------------------------------------------------


@pytest.mark.slow
@given(sets, sets, checks)
def test_within_means_allowed(
    inner: Permissions, outer: Permissions, check: Check
) -> None:
    """If a set is within another, the other allows all that it allows."""
    if is_within(inner, outer):
        assert check(outer) or not check(inner)


@pytest.mark.slow
@given(sets, sets)
def test_not_within_has_a_witness(inner: Permissions, outer: Permissions) -> None:
    """A set is within another exactly if that one allows all its typical things."""
    assert all(check(inner) for check in witnesses(inner))
    assert is_within(inner, outer) == all(check(outer) for check in witnesses(inner))


@pytest.mark.slow
@given(sets, sets)
def test_within_is_having_no_excess(inner: Permissions, outer: Permissions) -> None:
    """The words about an excess are empty exactly if there is none."""
    assert is_within(inner, outer) == (excess(inner, outer) == [])


@pytest.mark.slow
@given(sets, sets)
def test_equal_sets_are_equal_values(left: Permissions, right: Permissions) -> None:
    """Lists that allow the same are the same value; only True keeps apart."""
    lists_only = all(
        access is not True
        for one in (left, right)
        for access in (one.read, one.write, one.net, one.env)
    )
    if lists_only and is_within(left, right) and is_within(right, left):
        assert left == right
        assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        pytest.param(Permissions(read=()), NOTHING, id="empty-list"),
        pytest.param(Permissions(run=RunAccess()), NOTHING, id="empty-run"),
        pytest.param(
            Permissions(read=("/b", "/a/c", "/a", "/b")),
            Permissions(read=("/a", "/b")),
            id="paths",
        ),
        pytest.param(
            Permissions(net=("A.X.com:80", "*.x.com", "x.com:080", "x.com:80")),
            Permissions(net=("*.x.com", "x.com:80")),
            id="hosts",
        ),
        pytest.param(
            Permissions(net=("[0:0::1]:80", "[::1]", "x.com.")),
            Permissions(net=("[::1]", "x.com")),
            id="addresses",
        ),
        pytest.param(
            Permissions(env=("AWS_KEY", "AWS_*", "AWS_", "B")),
            Permissions(env=("AWS_*", "B")),
            id="names",
        ),
    ],
)
def test_lists_are_simplified(written: Permissions, kept: Permissions) -> None:
    """A list loses what is double or covered, and an empty one is False."""
    assert written == kept
    assert to_json(written) == to_json(kept)


@pytest.mark.parametrize(
    ("everything", "check"),
    [
        (Permissions(read=("/",)), reading("/a")),
        (Permissions(net=("*",)), reaching("x.com", 80)),
        (Permissions(env=("*",)), seeing("A")),
    ],
)
def test_true_and_a_list_of_everything_allow_the_same(
    everything: Permissions, check: Check
) -> None:
    """A list that covers all is not True, and is within it both ways."""
    mask = Permissions(
        read=bool(everything.read), net=bool(everything.net), env=bool(everything.env)
    )

    assert everything != mask
    assert is_within(everything, mask)
    assert is_within(mask, everything)
    assert intersection(mask, everything) == everything
    assert check(everything)
    assert check(mask)


# --- words and JSON ----------------------------------------------------------------


def test_excess_is_told_by_kind() -> None:
    """Each kind that goes beyond is one line with the entries that do."""
    inner = Permissions(
        read=("/a/b", "/a/c", "/d"),
        write=True,
        net=("*.x.com", "y.com:80"),
        env=("A*",),
        run=RunAccess(commands=("git", "ls"), paths=("/bin/sh",)),
    )
    outer = Permissions(
        read=("/a/b",),
        net=("*.x.com:80", "y.com"),
        env=True,
        run=RunAccess(commands=("ls",)),
    )

    assert excess(inner, outer) == [
        "read: /a/c, /d",
        "write: everything",
        "run: git, /bin/sh",
        "net: *.x.com",
    ]
    assert excess(EVERYTHING, outer)[2] == "run: everything"


@pytest.mark.slow
@given(sets)
def test_json_round_trip(allowed: Permissions) -> None:
    """A set survives being written as JSON and read again, value for value."""
    written = to_json(allowed)
    text = msgspec.json.encode(written)

    assert from_json(msgspec.json.decode(text)) == allowed
    assert to_json(from_json(written)) == written


def test_json_has_upstreams_form() -> None:
    """Kinds are true, false or a sorted list; programs a table of two lists."""
    allowed = Permissions(read=("/b", "/a"), net=True, run=RunAccess(commands=("git",)))

    assert to_json(allowed) == {
        "read": ["/a", "/b"],
        "write": False,
        "net": True,
        "env": False,
        "run": {"paths": [], "commands": ["git"]},
    }


def test_json_that_misses_a_kind_denies_it() -> None:
    """What is not in the document is not allowed."""
    assert from_json({"env": ["A"]}) == Permissions(env=("A",))


@pytest.mark.parametrize(
    "value", [None, [], {"read": "/a"}, {"net": [1]}, {"run": ["git"]}, {"env": None}]
)
def test_json_of_another_form_is_refused(value: object) -> None:
    """A document of the wrong form raises, and never becomes a set."""
    with pytest.raises(msgspec.ValidationError):
        from_json(value)
