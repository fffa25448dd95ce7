"""What servers say when they do not answer: many forms, one `Complaint`.

Each API has an error document of its own, and what stands in front of it (proxies,
gateways, web frameworks) has others. They are told apart by structure; nothing here
knows which server it was. A body that says nothing gives an empty complaint.

::

    {"error": {"message", "code" | "status" | "type"}}    most; Gemini in a list
    {"error": "words"}  {"message": "words"}              Ollama, proxies
    {"detail": "words" | [{"loc", "msg"}]}                FastAPI
    {"errors": [{"message"}]}
    words, or a page whose title says it                  proxies
"""

import html
import re

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.providers.dialects.dialect import Complaint

MOST_CHARACTERS = 300
"""What is kept of a server's words."""

_MOST_BYTES = 1 << 20
_CODE_CHARACTERS = 64
_DEEPEST = 4
_MOST_LOOKED_AT = MOST_CHARACTERS * 8
_TITLE = re.compile("<title", re.IGNORECASE)
_END_OF_TITLE = re.compile("</title", re.IGNORECASE)

# A number says less than a name; Gemini has both.
_CODES = ("code", "status", "type", "error_code", "reason")
_WORDS = ("message", "msg", "detail", "description", "error_description", "title")


def complaint_in(body: bytes) -> Complaint:
    """Find what a server says in the body of an error, whatever that is."""
    body = body[:_MOST_BYTES]
    try:
        value = parse_json(body)
    except Mismatch:
        return Complaint(message=shown(_plain_words(body)))
    if isinstance(value, str):
        return Complaint(message=shown(value))
    return complaint_of(value)


def complaint_of(value: JSONValue) -> Complaint:
    """Find what a server says in a JSON document."""
    return _complaint(value, _DEEPEST)


def _complaint(value: JSONValue, depth: int) -> Complaint:
    if isinstance(value, list) and value and depth:
        return _complaint(value[0], depth - 1)
    if not isinstance(value, dict):
        return Complaint()
    for key in ("error", "errors"):
        inner = value.get(key)
        if isinstance(inner, dict | list) and depth:
            found = _complaint(inner, depth - 1)
            if found != Complaint():
                return found
        if isinstance(inner, str) and inner.strip():
            # Some give the code under "error", and words beside it.
            words = _words(value)
            code = inner if words else _code(value)
            return Complaint(code=short_code(code), message=words or shown(inner))
    return Complaint(code=short_code(_code(value)), message=_words(value))


def _code(fields: dict[str, JSONValue]) -> str:
    named = [fields[key] for key in _CODES if isinstance(fields.get(key), str)]
    code = next((name for name in named if name and name != "error"), "")
    number = fields.get("code")
    if not code and isinstance(number, int) and not isinstance(number, bool):
        return str(number)
    return code


def _words(fields: dict[str, JSONValue]) -> str:
    for key in _WORDS:
        said = fields.get(key)
        if isinstance(said, list):
            said = "; ".join(filter(None, map(_invalid_field, said)))
        elif isinstance(said, dict):
            said = said.get("message")
        if isinstance(said, str) and said.strip():
            return shown(said + _behind(fields))
    return ""


def _invalid_field(entry: JSONValue) -> str:
    """One entry of a list of problems: where, and what."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, dict):
        return ""
    said = next((entry[key] for key in _WORDS if isinstance(entry.get(key), str)), "")
    place = entry.get("loc")
    if not isinstance(place, list):
        return said
    return f"{'.'.join(str(step) for step in place)}: {said}"


def _behind(fields: dict[str, JSONValue]) -> str:
    """What the provider behind a router said, in the router's words."""
    metadata = fields.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f": {raw}" if isinstance(raw, str) and raw.strip() else ""


def _plain_words(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    if not text.startswith("<"):
        return text if "\0" not in text else ""
    # One pattern for all of it would look for the end anew from each beginning.
    title = _TITLE.search(text)
    begin = text.find(">", title.end()) if title else -1
    end = _END_OF_TITLE.search(text, begin) if begin >= 0 else None
    return html.unescape(text[begin + 1 : end.start()][:_MOST_LOOKED_AT]) if end else ""


def shown(text: str) -> str:
    """A server's words as a message may have them: on one line, cut short."""
    text = " ".join(text[:_MOST_LOOKED_AT].split())
    text = "".join(character for character in text if character.isprintable())
    if len(text) <= MOST_CHARACTERS:
        return text
    return text[: MOST_CHARACTERS - 1].rstrip() + "…"


def short_code(code: str) -> str:
    """A server's code as a message may have it."""
    return shown(code)[:_CODE_CHARACTERS]
