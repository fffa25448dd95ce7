"""What can go wrong between us and a model server, one class for each thing to do.

::

    ProviderError
    ├── AnswerTooLarge        the server sent more than any answer is
    ├── BadAnswer             the server's answer in one piece has the wrong form
    ├── ConnectionLost        the connection broke while an answer was coming
    ├── NotAnAnswer           the server sent something that is no answer at all
    ├── PluginFailed          the code of a plugin broke off, or gave what is no answer
    ├── ProviderNotReady      there is no way to ask: no such provider, or no key
    ├── ProviderStatusError   the server answered with an error status
    ├── ProviderTimeout       the server took too long, in a phase that is told
    ├── ProviderUnreachable   there was no connection to be had
    ├── RequestNotSent        the request is not one that could be sent
    ├── StreamCut             the server's stream did not say how its answer went
    └── StreamedTooMuch       the server sent one event that is larger than any is

No message of these has a key in it, or more than a few hundred characters of what a
server sent.
"""

from typing import Literal, TypeAlias

from gambit_actors.errors import (
    BadResponse,
    EventTooLarge,
    ProviderError,
    StreamTruncated,
)

Phase: TypeAlias = Literal["connect", "first_byte", "idle", "total"]

_WAITED_FOR: dict[Phase, str] = {
    "connect": "did not take a connection",
    "first_byte": "sent no answer",
    "idle": "stopped sending",
    "total": "did not finish its answer",
}


class AnswerTooLarge(ProviderError):
    """The server did not stop sending.

    Attributes:
        provider: who was asked.
        limit_bytes: how much was read.
    """

    def __init__(self, provider: str, limit_bytes: int) -> None:
        super().__init__(
            f"{provider} sent more than {limit_bytes} bytes and had not finished"
        )
        self.provider = provider
        self.limit_bytes = limit_bytes


class BadAnswer(BadResponse):
    """The server answered with a document that is no answer of its dialect.

    Attributes:
        provider: who was asked.
    """

    def __init__(self, provider: str, path: str, problem: str) -> None:
        super().__init__(path, problem)
        place = f" at {path}" if path else ""
        message = f"{provider} sent an answer that cannot be read{place}: {problem}"
        if path != "error":  # Else the server says itself what is wrong.
            message += "; check that the dialect set for it is the one it speaks"
        self.args = (message,)
        self.provider = provider


class ConnectionLost(ProviderError):
    """The connection broke after the server had begun to answer.

    Attributes:
        provider: who was asked.
        reason: what broke it.
    """

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"the connection to {provider} broke off: {reason}")
        self.provider = provider
        self.reason = reason


class NotAnAnswer(ProviderError):
    """The server answered with success, and with nothing that can be read.

    Attributes:
        provider: who was asked.
        reason: what it sent instead.
    """

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"{provider} sent no answer that can be read: {reason}")
        self.provider = provider
        self.reason = reason


class PluginFailed(ProviderError):
    """A plugin broke the rules of providers, or off.

    Attributes:
        plugin: its name.
        reason: what it did.
    """

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(f"the plugin {plugin} gave no answer: {reason}")
        self.plugin = plugin
        self.reason = reason


class ProviderNotReady(ProviderError):
    """A model cannot be asked as things are set up.

    Attributes:
        model: the model, as it was asked for.
        reason: what is missing, and how to provide it.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model} cannot be asked: {reason}")
        self.model = model
        self.reason = reason


class ProviderStatusError(ProviderError):
    """The server answered with an error status.

    Attributes:
        provider: who was asked.
        status: the HTTP status.
        code: the server's own code for it; empty if it gave none.
        reason: the server's words, cut short; empty if it gave none.
        retry_after_seconds: how long the server asks to be left alone, if it does.
    """

    def __init__(
        self,
        provider: str,
        status: int,
        *,
        code: str = "",
        reason: str = "",
        retry_after_seconds: float | None = None,
    ) -> None:
        named = f" ({code})" if code else ""
        words = f": {reason}" if reason else ""
        super().__init__(f"{provider} answered with HTTP {status}{named}{words}")
        self.provider = provider
        self.status = status
        self.code = code
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class ProviderTimeout(ProviderError):
    """The server took longer than it may.

    Attributes:
        provider: who was asked.
        phase: what was waited for.
        seconds: how long.
    """

    def __init__(self, provider: str, phase: Phase, seconds: float) -> None:
        what = _WAITED_FOR[phase]
        super().__init__(f"{provider} {what} within {seconds:g} seconds")
        self.provider = provider
        self.phase = phase
        self.seconds = seconds


class ProviderUnreachable(ProviderError):
    """There was no connection to be had; nothing was asked.

    Attributes:
        provider: who was to be asked.
        reason: what the system says.
    """

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"{provider} cannot be reached: {reason}")
        self.provider = provider
        self.reason = reason


class RequestNotSent(ProviderError):
    """A request breaks the rules of who was to be asked, and so was not sent.

    Attributes:
        provider: who was to be asked.
        reason: which rule, and where.
    """

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"the request to {provider} was not sent: {reason}")
        self.provider = provider
        self.reason = reason


class StreamCut(StreamTruncated):
    """The server ended its stream without saying how its answer went.

    Attributes:
        provider: who was asked.
    """

    def __init__(self, provider: str, events_seen: int) -> None:
        super().__init__(events_seen)
        message = (
            f"{provider} ended its stream after {events_seen} events without saying "
            "how its answer went; ask again, and if that does not help, check that "
            "the dialect set for it is the one it speaks"
        )
        self.args = (message,)
        self.provider = provider


class StreamedTooMuch(EventTooLarge):
    """The server sent one event that is larger than any that makes sense.

    Attributes:
        provider: who was asked.
    """

    def __init__(self, provider: str, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        message = (
            f"{provider} sent an event of more than {limit_bytes} bytes, which is as "
            "much as is read of one; ask for less at once"
        )
        self.args = (message,)
        self.provider = provider
