"""Content parts: what a message, a tool output or a reasoning item is made of."""

from typing import TypeAlias

from gambit_actors.openresponses.base import (
    UNKNOWN_TAG,
    JSONValue,
    Tagged,
    Unknown,
    written,
)


class UrlCitation(Tagged, tag="url_citation", frozen=True, kw_only=True):
    """A span of output text that rests on a web page."""

    url: str
    title: str
    start_index: int
    end_index: int


class UnknownAnnotation(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """An annotation of a type we do not know."""


Annotation: TypeAlias = UrlCitation | UnknownAnnotation


class InputText(Tagged, tag="input_text", frozen=True, kw_only=True):
    """Text given to the model."""

    text: str


class InputImage(Tagged, tag="input_image", frozen=True, kw_only=True):
    """An image given to the model, by URL or data URL."""

    image_url: str | None = None
    detail: str | None = None


class InputFile(Tagged, tag="input_file", frozen=True, kw_only=True):
    """A file given to the model, by URL or as base64 data."""

    filename: str | None = None
    file_data: str | None = None
    file_url: str | None = None


class InputVideo(Tagged, tag="input_video", frozen=True, kw_only=True):
    """A video given to the model, by URL."""

    video_url: str


class OutputText(Tagged, tag="output_text", frozen=True, kw_only=True):
    """Text the model wrote."""

    text: str
    annotations: tuple[Annotation, ...] = written(())
    # Kept as JSON: servers disagree on which keys a log probability has.
    logprobs: tuple[JSONValue, ...] | None = None


class Refusal(Tagged, tag="refusal", frozen=True, kw_only=True):
    """The model's words for why it will not do what was asked."""

    refusal: str


class Text(Tagged, tag="text", frozen=True, kw_only=True):
    """Plain text without a direction."""

    text: str


class SummaryText(Tagged, tag="summary_text", frozen=True, kw_only=True):
    """A piece of a summary of the model's reasoning."""

    text: str


class ReasoningText(Tagged, tag="reasoning_text", frozen=True, kw_only=True):
    """A piece of the model's reasoning itself."""

    text: str


class UnknownPart(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """A content part of a type we do not know."""


Part: TypeAlias = (
    InputText
    | InputImage
    | InputFile
    | InputVideo
    | OutputText
    | Refusal
    | Text
    | SummaryText
    | ReasoningText
    | UnknownPart
)
