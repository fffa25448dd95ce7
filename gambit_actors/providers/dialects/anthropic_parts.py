"""Content parts as the content blocks that Anthropic Messages takes.

A block, or the reason why there is none; an empty text is neither.
"""

import base64
import binascii
import re
from typing import TypeAlias

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    OutputText,
    Part,
    Refusal,
    Text,
)

Block: TypeAlias = dict[str, JSONValue]

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]*)*?)(;base64)?,", re.ASCII)
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF = "application/pdf"
_PDF_IN_BASE64 = "JVBERi"


def text_block(text: str) -> Block | None:
    """A text block; None for a text of nothing but space, which the API refuses."""
    return {"type": "text", "text": text} if text.strip() else None


def block_of(part: Part) -> Block | str | None:
    """The block for a part, the reason why it has none, or None for empty text."""
    match part:
        case InputText(text=text) | OutputText(text=text) | Text(text=text):
            return text_block(text)
        case Refusal(refusal=text):
            return text_block(text)
        case InputImage(image_url=str(url)):
            return _image(url)
        case InputFile():
            return _document(part)
        case _:
            return f"there is no block for a part of type {part.type}"


def _image(url: str) -> Block | str:
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    found = _DATA_URL.match(url)
    if found is None or not found[3]:
        return "a data URL of an image must be in base64"
    if found[1] not in _IMAGES:
        return f"images are taken as {', '.join(_IMAGES)}, not as {found[1]}"
    source = {"type": "base64", "media_type": found[1], "data": url[found.end() :]}
    return {"type": "image", "source": source}


def _document(part: InputFile) -> Block | str:
    title = {"title": part.filename} if part.filename else {}
    if part.file_url is not None:
        source: JSONValue = {"type": "url", "url": part.file_url}
        return {"type": "document", "source": source} | title
    if part.file_data is None:
        return "a file without data or a URL"
    media_type, data = _media_type(part.filename or "", part.file_data)
    if media_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": data}
    elif media_type.startswith("text/"):
        text = _decoded(data)
        if text is None:
            return "a text file must be UTF-8 in base64"
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return "files are taken as PDF or text"
    return {"type": "document", "source": source} | title


def _media_type(name: str, data: str) -> tuple[str, str]:
    """What a file is, by its data URL, its first bytes or its name; and its data."""
    found = _DATA_URL.match(data)
    if found is not None and found[3]:
        data = data[found.end() :]
        if found[1] not in (None, "application/octet-stream"):
            return found[1], data
    if data.startswith(_PDF_IN_BASE64):
        return _PDF, data
    is_text = name.lower().endswith((".txt", ".md", ".csv", ".json", ".html"))
    return ("text/plain" if is_text else ""), data


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
