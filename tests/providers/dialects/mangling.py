"""Streams that are damaged: what no reader may crash on or be fooled by."""

import itertools
from typing import TypeAlias

from hypothesis import strategies as st

from gambit_actors.openresponses import SSEDecoder, SSEFrame
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.testing import dialects
from tests.providers.dialects.golden import Played, golden_bytes, golden_names

JSON: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)

Change: TypeAlias = tuple[str, int, int]
CHANGES: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(
        st.sampled_from(["drop", "repeat", "swap", "cut"]),
        st.integers(0, 200),
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=4,
)


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """Bytes cut at these places, whatever their order."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


def frames_of(dialect: str, name: str) -> list[SSEFrame]:
    """The frames of a golden stream."""
    return SSEDecoder().feed(golden_bytes(dialect, name))


def mangled(frames: list[SSEFrame], changes: list[Change]) -> list[SSEFrame]:
    """Frames of which some are lost, sent twice, or out of order."""
    frames = list(frames)
    for kind, first, second in changes:
        if not frames:
            break
        here, there = first % len(frames), second % len(frames)
        if kind == "drop":
            del frames[here]
        elif kind == "repeat":
            frames.insert(there, frames[here])
        elif kind == "swap":
            frames[here], frames[there] = frames[there], frames[here]
        else:
            del frames[here:]
    return frames


def play_frames(dialect: Dialect, frames: list[SSEFrame]) -> Played:
    """Read frames, all of them, also behind the end."""
    return dialects.play_frames(dialect, frames, is_deaf_to_end=True)


def golden_streams(dialect: str) -> st.SearchStrategy[list[SSEFrame]]:
    """Any of the golden streams of a dialect, as frames."""
    return st.sampled_from(golden_names(dialect)).map(
        lambda name: frames_of(dialect, name)
    )
