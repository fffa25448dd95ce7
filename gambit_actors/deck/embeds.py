"""The images of a Markdown text, and which of them stand for a snippet.

A snippet is embedded as an image whose target is a Markdown file or a ``gambit://``
URI. Any other image is just that. What stands in code, in a comment or behind a
backslash is not an image at all. The whole is linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.deck.toml_places import Span

EmbedKind: TypeAlias = Literal["built-in", "file", "code"]

_FENCE = re.compile(r"^[ \t>]*(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
# No part can run over the start of another image, so nothing is looked at twice.
_TOKEN = re.compile(
    r"""
    \\.                                   # an escaped character
    | (?P<ticks>`+)
    | (?P<comment><!--)
    | !\[ (?P<alt>[^\[\]]{0,500}) \]
      \( \s{0,20}
      (?: <(?P<angled>[^<>\n]{1,1000})> | (?P<bare>[^\s()<>]{1,1000}) )
      (?: \s{1,20} (?: "[^"\n]{0,500}" | '[^'\n]{0,500}' ) )? \s{0,20}
      \)
    | !\[ [^\[\]]{0,500} \]               # not an image to Markdown, but meant as one
      \( (?P<spaced>[^\s()<>"'][^()<>"'\x00-\x1f]{0,500}\.(?:md|markdown|txt)) [ ]* \)
    """,
    re.VERBOSE | re.DOTALL,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_SNIPPET_ENDINGS = (".md", ".markdown", ".txt")
_CODE_ENDINGS = (".ts", ".tsx", ".js", ".mjs", ".cjs", ".py")


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A Markdown image: where it is, and where its target is written.

    Attributes:
        is_valid: False for what only looks like an image: a space in its target
            makes it plain text.
    """

    span: Span
    target: str
    target_span: Span
    is_valid: bool = True


def images(text: str, body: Span) -> list[Image]:
    """The images of a part of a text, in order."""
    return [image for span in _prose(text, body) for image in _images_in(text, span)]


def embed_kind(target: str) -> EmbedKind | None:
    """What an image embeds; None for an ordinary image."""
    if target.startswith("gambit://"):
        return "built-in"
    if _SCHEME.match(target):
        return None
    lowered = target.lower()
    if lowered.endswith(_SNIPPET_ENDINGS):
        return "file"
    return "code" if lowered.endswith(_CODE_ENDINGS) else None


def path_from_target(target: str) -> str:
    """The path of a file as it is, where a link had to write it with escapes."""

    def unescaped(match: re.Match[str]) -> str:
        return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")

    return _PERCENT.sub(unescaped, target)


def _prose(text: str, body: Span) -> Iterator[Span]:
    """The stretches of a text that are not in code fences."""
    start = body.start
    while opening := _FENCE.search(text, start, body.end):
        yield Span(start, opening.start())
        mark = opening[1]
        closing = re.compile(
            rf"^[ \t>]*{re.escape(mark[0])}{{{len(mark)},}}[ \t\r]*$", re.MULTILINE
        )
        line_end = text.find("\n", opening.end(), body.end)
        closed = closing.search(text, line_end, body.end) if line_end >= 0 else None
        if closed is None:
            return  # A fence that is never closed goes on to the end.
        start = closed.end()
    yield Span(start, body.end)


def _images_in(text: str, span: Span) -> Iterator[Image]:
    code = _CodeSpans(text, span)
    at = span.start
    while token := _TOKEN.search(text, at, span.end):
        at = token.end()
        if token["ticks"] is not None:
            at = code.end_of(Span(*token.span()))
        elif token["comment"] is not None:
            end = text.find("-->", at, span.end)
            if end < 0:
                return  # As in HTML, a comment that is never closed hides the rest.
            at = end + len("-->")
        elif token[0].startswith("!"):
            group = next(
                g for g in ("angled", "bare", "spaced") if token[g] is not None
            )
            yield Image(
                span=Span(*token.span()),
                target=token[group],
                target_span=Span(*token.span(group)),
                is_valid=group != "spaced",
            )


class _CodeSpans:
    """Which backticks of a stretch of prose belong together."""

    def __init__(self, text: str, span: Span) -> None:
        self._runs: dict[int, list[int]] = {}
        for run in _TICKS.finditer(text, span.start, span.end):
            self._runs.setdefault(len(run[0]), []).append(run.start())
        blanks = _BLANK_LINE.finditer(text, span.start, span.end)
        self._paragraph_ends = [blank.start() for blank in blanks]

    def end_of(self, ticks: Span) -> int:
        """Where code ends that starts here; unclosed backticks are only themselves."""
        length = ticks.end - ticks.start
        starts = self._runs.get(length, [])
        following = bisect_right(starts, ticks.start)
        if following == len(starts):
            return ticks.end
        closing = starts[following]
        before = bisect_right(self._paragraph_ends, ticks.start)
        if before < bisect_right(self._paragraph_ends, closing):
            return ticks.end  # Code does not go on in the next paragraph.
        return closing + length
