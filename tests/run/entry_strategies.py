"""Hypothesis strategies for the entries of a log: any single one, and batches."""

import functools
import typing

import msgspec
from hypothesis import strategies as st

from gambit_actors.run.entries import Entry, Failure
from tests.openresponses.strategies import items, json_values, texts, usages, words

KINDS: tuple[type[Entry], ...] = typing.get_args(Entry)


def _values_for(name: str, annotation: object) -> st.SearchStrategy[object] | None:
    by_name: dict[str, st.SearchStrategy[object]] = {
        "item": items(),
        "usage": st.one_of(st.none(), usages()),
        "envelope": st.dictionaries(texts(), json_values(), max_size=2),
        "failure": st.one_of(
            st.none(),
            st.builds(Failure, code=words(), message=texts(), details=json_values()),
        ),
    }
    if name in by_name:
        return by_name[name]
    by_type: dict[object, st.SearchStrategy[object]] = {
        typing.Any: json_values(),
        str: texts(),
        str | None: st.one_of(st.none(), texts()),
        int: st.integers(0, 2**40),
        float | None: st.one_of(st.none(), st.floats(0, 2e9)),
    }
    return by_type.get(annotation)


@functools.cache
def entries() -> st.SearchStrategy[Entry]:
    """Entries of every kind, with anything in them that JSON can carry."""
    kinds: list[st.SearchStrategy[Entry]] = []
    for kind in KINDS:
        fields = {
            field.name: values
            for field in msgspec.structs.fields(kind)
            if (values := _values_for(field.name, field.type)) is not None
        }
        kinds.append(st.builds(kind, **fields))
    return st.one_of(kinds)


@functools.cache
def batches() -> st.SearchStrategy[list[list[Entry]]]:
    """What a run appends: some entries, a few times."""
    return st.lists(st.lists(entries(), min_size=1, max_size=4), max_size=4)
