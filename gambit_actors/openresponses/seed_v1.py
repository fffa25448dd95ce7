"""The Gambit v1 form <-> the public standard's form.

Gambit's first contract was written before the standard had settled, and its saved
states and traces keep that form. It differs in spelling, not in kind::

    v1                                      standard
    tools: {type, function: {name, ...}}    {type, name, ...}
    tool_choice: {type, function: {name}}   {type, name}
    params: {temperature, ...}              keys of the request itself
    usage: {promptTokens, ...}              {input_tokens, ...}
    created                                 created_at
    response.failed: {error}                {response: {error}}
    metadata: any JSON                      strings

Functions here take and give parsed JSON on the v1 side. They read the standard's
spelling too, so a document that mixes both is no trouble. A key named twice, inside
``params`` and beside it, counts as it stands beside it.
"""

from typing import cast

import msgspec

from gambit_actors.errors import BadRequest, BadResponse
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import (
    decode_event,
    event_from_json,
    request_from_json,
    response_from_json,
)
from gambit_actors.openresponses.describing import shown
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    OutputItemAdded,
    OutputItemDone,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    StandardEvent,
    UnknownEvent,
)
from gambit_actors.openresponses.followup import items_of_input
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.openresponses.parts import InputText, OutputText
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.openresponses.writing import to_builtins

_JSONObject = dict[str, JSONValue]

_USAGE_KEYS = {
    "promptTokens": "input_tokens",
    "completionTokens": "output_tokens",
    "totalTokens": "total_tokens",
}
_STATUS_OF = {
    "response.completed": "completed",
    "response.failed": "failed",
    "response.incomplete": "incomplete",
}
# What a v1 request says itself; all else goes through params.
_REQUEST_KEYS = (
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "stream",
    "max_output_tokens",
    "metadata",
)


def request_from_v1(value: JSONValue) -> CreateResponse:
    """Read a v1 request.

    Metadata values that are not strings become their JSON text, because the standard
    has only strings there.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    if not isinstance(value, dict):
        return request_from_json(value)
    fields = {key: entry for key, entry in value.items() if key != "params"}
    params = value.get("params")
    if isinstance(params, dict):
        fields = params | fields
    elif params is not None:
        fields["params"] = params
    if isinstance(metadata := fields.get("metadata"), dict):
        fields["metadata"] = {
            key: entry if isinstance(entry, str) else _json_text(entry)
            for key, entry in metadata.items()
        }
    return request_from_json(fields)


def v1_from_request(request: CreateResponse) -> JSONValue:
    """Write a request in v1 form."""
    fields = cast(_JSONObject, to_builtins(request))
    fields["input"] = [v1_from_item(item) for item in items_of_input(request)]
    if request.tools is not None:
        fields["tools"] = [_nested(tool) for tool in fields["tools"]]
    if isinstance(fields.get("tool_choice"), dict):
        fields["tool_choice"] = _nested(fields["tool_choice"])
    said = {key: fields[key] for key in _REQUEST_KEYS if key in fields}
    params = {key: entry for key, entry in fields.items() if key not in said}
    return said | {"params": params} if params else said


def response_from_v1(value: JSONValue) -> Response:
    """Read a v1 response.

    A v1 response without a status is one that a provider returned, and it returned
    because it was done: failed if there is an error, completed if not.

    Raises:
        BadResponse: with the path and what is wrong there.
    """
    if not isinstance(value, dict):
        return response_from_json(value)
    fields = dict(value)
    if "created" in fields:
        created = fields.pop("created")
        fields.setdefault("created_at", created)
    if isinstance(usage := fields.get("usage"), dict):
        fields["usage"] = {_USAGE_KEYS.get(k, k): entry for k, entry in usage.items()}
    if isinstance(error := fields.get("error"), dict):
        fields["error"] = _error_from_v1(error)
    if fields.get("status") is None:
        fields["status"] = "failed" if fields.get("error") else "completed"
    return response_from_json(fields)


def v1_from_response(response: Response) -> JSONValue:
    """Write a response in v1 form, which has no place for the request's settings."""
    fields: _JSONObject = {
        "id": response.id,
        "object": "response",
        "status": response.status,
        "output": [v1_from_item(item) for item in response.output],
    }
    if response.model:
        fields["model"] = response.model
    if response.created_at:
        fields["created"] = response.created_at
    if response.usage is not None:
        fields["usage"] = v1_from_usage(response.usage)
    if response.error is not None:
        fields["error"] = to_builtins(response.error)
    return response.extra | fields


def v1_from_usage(usage: Usage) -> JSONValue:
    """Write token counts with v1's names."""
    return {
        "promptTokens": usage.input_tokens,
        "completionTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
    }


def v1_from_item(item: Item) -> JSONValue:
    """Write an item in v1 form: content in parts, no status.

    Item types that v1 does not have are written as the standard has them.
    """
    if isinstance(item, Message) and isinstance(item.content, str):
        kind = OutputText if item.role == "assistant" else InputText
        item = msgspec.structs.replace(item, content=(kind(text=item.content),))
    fields = cast(_JSONObject, to_builtins(item))
    if not isinstance(item, Message | FunctionCall | FunctionCallOutput):
        return fields
    fields.pop("status", None)
    if isinstance(item, Message):
        fields["content"] = [_v1_part(part) for part in fields["content"]]
    return fields


def _v1_part(part: _JSONObject) -> _JSONObject:
    """A part without the list of annotations that the standard asks for."""
    if part.get("annotations") != []:
        return part
    return {key: entry for key, entry in part.items() if key != "annotations"}


def event_from_v1(value: JSONValue) -> Event:
    """Read one v1 event. Never raises for what is in it."""
    if not isinstance(value, dict):
        return event_from_json(value)
    kind, response = value.get("type"), value.get("response")
    rest = {key: entry for key, entry in value.items() if key != "response"}
    if kind == "response.failed" and response is None:
        error = rest.pop("error", None)
        response = {"id": "", "error": error if isinstance(error, dict) else {}}
    if not isinstance(response, dict):
        return event_from_json(value)
    try:
        # A v1 response without a status has the one its event gives it.
        status = _STATUS_OF.get(str(kind), "in_progress")
        read = response_from_v1({"status": status} | response)
    except BadResponse as problem:
        return MalformedEvent(
            reason="invalid_shape",
            problem=f"response.{problem}",
            raw=shown(value),
            type=str(kind),
        )
    return event_from_json(rest | {"response": to_builtins(read)})


def decode_v1_event(data: bytes) -> Event:
    """Decode the payload of one streamed v1 event. Never raises for what is in it."""
    try:
        value = parse_json(data)
    except Mismatch:
        return decode_event(data)  # Which says what is wrong with it.
    return event_from_v1(value)


def v1_from_event(event: StandardEvent | UnknownEvent) -> JSONValue:
    """Write an event in v1 form; events that v1 does not have as they are."""
    match event:
        case ResponseFailed(response=response):
            error = {} if response.error is None else to_builtins(response.error)
            return {"type": event.type, "error": error}
        case ResponseCreated(response=response) | ResponseCompleted(response=response):
            return {"type": event.type, "response": v1_from_response(response)}
        case OutputItemAdded(item=item) | OutputItemDone(item=item) if item is not None:
            return {
                "type": event.type,
                "output_index": event.output_index,
                "item": v1_from_item(item),
            }
        case _:
            return to_builtins(event)


def _error_from_v1(error: _JSONObject) -> _JSONObject:
    """In v1 both keys of an error are optional."""
    return {"message": "no reason was given"} | {
        key: entry for key, entry in error.items() if entry is not None
    }


def _nested(tool: _JSONObject) -> _JSONObject:
    """Put a function's keys under ``function``; leave other types alone."""
    if tool.get("type") != "function":
        return tool
    inner = {key: entry for key, entry in tool.items() if key != "type"}
    return {"type": "function", "function": inner}


def _json_text(value: JSONValue) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (RecursionError, ValueError) as problem:
        raise BadRequest("metadata", f"not JSON: {problem}") from problem
