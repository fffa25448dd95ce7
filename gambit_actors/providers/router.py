"""Which provider answers for a model, and which models stand behind a name.

``openai/gpt-5`` is the model ``gpt-5`` of the provider ``openai``. A name without a
provider is an alias, which stands for one model or for several in order, each perhaps
with settings of its own; if it is none, the fallback provider is asked for it.

The router expands names and passes requests on. Who is asked next when a model fails
is the runtime's to decide, which reserves budgets and traces every hop.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import encode
from gambit_actors.providers.errors import ProviderNotReady
from gambit_actors.run.model_params import with_params_under
from gambit_actors.run.ports import (
    Candidate,
    ModelContext,
    ModelProvider,
    PacedProvider,
    ServerPace,
)


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """A name that stands for models.

    Attributes:
        models: in the order in which to ask them; each may be an alias itself.
        params: what is asked of them where the deck asks for nothing else; a request
            that holds these settings alone.
        description: for people.
    """

    models: tuple[str, ...]
    params: CreateResponse = CreateResponse()
    description: str = ""


MOST_NAMES = 100
"""How many names an alias may come to, with those in between."""

TOO_MANY = f"comes to more than {MOST_NAMES} names: name the models themselves"


class TooManyNames(RequestError):
    """An alias comes to more names than any list of models has."""

    def __init__(self, alias: str) -> None:
        super().__init__(f"the alias {alias} {TOO_MANY}")


class Router:
    """Passes requests to the provider that a model's name begins with.

    Args:
        providers: by that beginning, which has no slash in it.
        aliases: by their names.
        fallback: the provider of names that name none; None if there is to be none.

    Raises:
        RequestError: an alias leads back to itself, to nothing, or to more names than
            any list of models has.
    """

    def __init__(
        self,
        providers: Mapping[str, ModelProvider],
        *,
        aliases: Mapping[str, Alias] | None = None,
        fallback: str | None = None,
    ) -> None:
        self._providers = providers
        self._aliases = dict(aliases or {})
        self._fallback = fallback
        self._asked: dict[str, ModelProvider] = {}
        for name in self._aliases:
            if not self.candidates(name):
                msg = f"the alias {name} stands for no model"
                raise RequestError(msg)

    def candidates(self, model: str) -> Sequence[Candidate]:
        """The models that a name stands for, in the order in which to ask them."""
        return [
            Candidate(model=self._full_name(name), params=params)
            for name, params in expanded(self._aliases, model)
        ]

    def paces(self) -> Mapping[str, ServerPace]:
        """The servers that were asked so far, and how fast they are now."""
        found: dict[str, ServerPace] = {}
        for provider in self._asked.values():
            if isinstance(provider, PacedProvider):
                found |= provider.paces()
        return found

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Have the provider of the model answer.

        Raises:
            ProviderNotReady: there is no such provider.
            ProviderError: it has no answer.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        model = self._full_name(request.model or "")
        prefix, slash, name = model.partition("/")
        try:
            provider = self._providers.get(prefix) if slash else None
        except ProviderNotReady as problem:
            raise self._named(problem, model, prefix) from problem
        if provider is None:
            raise ProviderNotReady(model, self._advice(model, prefix))
        self._asked[prefix] = provider
        request = msgspec.structs.replace(request, model=name)
        return await provider.responses(request, context, on_event)

    def _full_name(self, model: str) -> str:
        if "/" in model or self._fallback is None or not model:
            return model
        return f"{self._fallback}/{model}"

    def _named(
        self, problem: ProviderNotReady, model: str, prefix: str
    ) -> ProviderNotReady:
        """What keeps a provider from being asked, said of one of its models."""
        reason, name = problem.reason, model.partition("/")[2]
        if prefix == self._fallback:
            # The provider may have been none, and the name an alias with a slip in it.
            close = difflib.get_close_matches(name, self._aliases, n=1)
            if close:
                reason += f"; if it was to be an alias, did you mean {close[0]!r}?"
        return ProviderNotReady(model, reason)

    def _advice(self, model: str, prefix: str) -> str:
        known = sorted([*self._providers, *self._aliases])
        if not model:
            return "no model is named"
        close = difflib.get_close_matches(prefix, known, n=1)
        if close:
            return f"there is no provider {prefix!r}; did you mean {close[0]!r}?"
        names = ", ".join(sorted(self._providers)) or "none"
        return f"there is no provider {prefix!r}; there are: {names}"


def expanded(
    aliases: Mapping[str, Alias], name: str
) -> Iterator[tuple[str, CreateResponse]]:
    """The names behind a name that are no aliases, in order, each with its settings.

    A name that is come to again with the same settings is passed over: who has been
    asked need not be asked again, and lists that name each other twice double with
    every step.

    Raises:
        TooManyNames: it leads to more than `MOST_NAMES` of them.
        RequestError: it leads back to itself.
    """
    waiting: list[_Step] = [(name, CreateResponse(), ())]
    seen: set[tuple[str, bytes]] = set()
    while waiting:
        model, params, above = waiting.pop()
        if model in above:
            chain = " -> ".join([*above, model])
            msg = f"the alias {model} leads back to itself: {chain}"
            raise RequestError(msg)
        step = (model, encode(params))
        if step in seen:
            continue
        seen.add(step)
        alias = aliases.get(model)
        if alias is None:
            yield model, params
            continue
        # Who is asked for first knows best what is wanted.
        under = with_params_under(params, alias.params)
        below = dict.fromkeys(alias.models)
        if len(waiting) + len(seen) + len(below) > MOST_NAMES:
            raise TooManyNames(name)
        waiting += [(one, under, (*above, model)) for one in reversed(below)]


_Step: TypeAlias = tuple[str, CreateResponse, tuple[str, ...]]
