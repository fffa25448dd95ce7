"""Documents that no server should send, of which each dialect has to make something."""

from collections.abc import Iterator

JUNK = (
    b"null",
    b"[]",
    b"{}",
    b"1e999",
    b'"text"',
    b"[[[[]]]]",
    b'{"type": 7}',
    b'{"type": "response.completed"}',
    b'{"choices": [null], "candidates": [null], "delta": [], "index": -1}',
    b'{"choices": {}, "candidates": {}, "usage": [], "message": 1, "error": 0}',
    b'{"choices": [{"delta": {"tool_calls": [{}]}}], "content_block": {}}',
    b'{"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}',
    b"\xff\xfe",
    b"{not json",
)
"""Frames without sense."""

# Values that a decoder skips where it has no use for them, and that nobody can read.
_UNREADABLE = (b"1e999", b"1" * 5000, b"[" * 5000 + b"]" * 5000)
_UNKNOWN_THINGS = (
    b'{"type": "check.unheard_of", "check": %b}',
    b'{"type": "content_block_start", "index": 0, "content_block": %b}',
    b'{"type": "content_block_delta", "index": 0, "delta": %b}',
    b'{"type": "response.output_item.done", "output_index": 0, "item": %b}',
    b'{"object": "check.unheard_of", "check": %b}',
    b'{"choices": [{"index": 0, "delta": %b}]}',
    b'{"candidates": [{"content": {"parts": [%b]}}], "check": %b}',
)


def unreadable() -> Iterator[bytes]:
    """Frames that are in form, but for a value in a place that nobody knows."""
    for value in _UNREADABLE:
        thing = b'{"type": "check:thing", "check": ' + value + b"}"
        for around in _UNKNOWN_THINGS:
            yield around.replace(b"%b", thing)
