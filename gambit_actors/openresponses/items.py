"""Items: the entries of a conversation, in the order in which they happened.

One set of structs serves both directions. Sent to a model, an item needs no ``id``
and a message may be a plain string; in a response every item has its ``id`` and
``status`` and a message is a list of parts. `ResponseWriter` and `ResponseBuilder`
see to the second form.
"""

from typing import Literal, TypeAlias

from gambit_actors.openresponses.base import (
    UNKNOWN_TAG,
    JSONValue,
    Tagged,
    Unknown,
    written,
)
from gambit_actors.openresponses.parts import InputText, OutputText, Part, Refusal

_TEXTS = (InputText, OutputText)

Role: TypeAlias = Literal["user", "assistant", "system", "developer"]
ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class Message(Tagged, tag="message", frozen=True, kw_only=True):
    """Something said by the user, the model, or whoever set the conversation up."""

    role: Role
    content: str | tuple[Part, ...]
    id: str | None = None
    status: str | None = None
    phase: str | None = None

    @classmethod
    def claims(cls, fields: dict[str, JSONValue]) -> bool:
        """Real clients leave ``type`` out of messages; the role gives them away."""
        return "role" in fields

    @property
    def text(self) -> str:
        """All text of the message, parts joined without a separator."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, _TEXTS))

    @property
    def refusal(self) -> str:
        """The words of a refusal, empty when the model did not refuse."""
        if isinstance(self.content, str):
            return ""
        return "".join(p.refusal for p in self.content if isinstance(p, Refusal))


class FunctionCall(Tagged, tag="function_call", frozen=True, kw_only=True):
    """The model asks for a function; ``arguments`` is its JSON text, untouched."""

    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class FunctionCallOutput(Tagged, tag="function_call_output", frozen=True, kw_only=True):
    """What a function gave back, for the call with the same ``call_id``."""

    call_id: str
    output: str | tuple[Part, ...]
    id: str | None = None
    status: str | None = None


class Reasoning(Tagged, tag="reasoning", frozen=True, kw_only=True):
    """What the model thought: raw, summed up, or sealed by the provider."""

    summary: tuple[Part, ...] = written(())
    id: str | None = None
    content: tuple[Part, ...] | None = None
    encrypted_content: str | None = None
    # Not in the schema, which tolerates it; OpenAI sends it.
    status: str | None = None


class Compaction(Tagged, tag="compaction", frozen=True, kw_only=True):
    """An earlier stretch of conversation, folded up by the provider."""

    encrypted_content: str
    id: str | None = None
    created_by: str | None = None


class ItemReference(Tagged, tag="item_reference", frozen=True, kw_only=True):
    """Stands for an item that the server already has."""

    id: str

    @classmethod
    def claims(cls, fields: dict[str, JSONValue]) -> bool:
        """The one item that the schema allows without a ``type``."""
        return "id" in fields and "role" not in fields


class UnknownItem(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """An item of a type we do not know."""


Item: TypeAlias = (
    Message
    | FunctionCall
    | FunctionCallOutput
    | Reasoning
    | Compaction
    | ItemReference
    | UnknownItem
)


def user_message(text: str) -> Message:
    """A message from the user."""
    return Message(role="user", content=(InputText(text=text),))


def system_message(text: str) -> Message:
    """A message that sets the conversation up."""
    return Message(role="system", content=(InputText(text=text),))


def assistant_message(text: str) -> Message:
    """A message the model wrote earlier."""
    return Message(role="assistant", content=(OutputText(text=text),))
