"""Names of models, and who answers for them."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.errors import ProviderNotReady
from gambit_actors.providers.router import Alias, Router
from gambit_actors.run.ports import ModelContext, ModelProvider

CONTEXT = ModelContext(run_id="run-1", deck="PROMPT.md", turn=1, pass_number=1)


class Named:
    """A provider that says who it is and what it was asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def responses(
        self,
        request: CreateResponse,
        _context: ModelContext,
        _on_event: Callable[[Event], None],
    ) -> Response:
        """Answer with both names as the id."""
        return Response(id=f"{self.name}:{request.model}", status="completed")


def router(**aliases: Alias) -> Router:
    """A router between two providers."""
    providers = {"openai": Named("openai"), "google": Named("google")}
    return Router(providers, aliases=aliases, fallback="openai")


async def answered(router: Router, model: str) -> str:
    """Who answers for a model."""
    response = await router.responses(
        CreateResponse(model=model), CONTEXT, lambda _: None
    )
    return response.id


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("openai/gpt-5", "openai:gpt-5"),
        ("google/gemini-3-pro", "google:gemini-3-pro"),
        ("openai/vendor/model", "openai:vendor/model"),
        ("gpt-5", "openai:gpt-5"),
    ],
)
async def test_a_name_begins_with_its_provider(model: str, answer: str) -> None:
    """What stands before the first slash answers; without one the fallback does."""
    assert await answered(router(), model) == answer


async def test_an_unknown_provider_is_named_with_a_guess() -> None:
    """A misspelt provider is an error that says which one may be meant."""
    with pytest.raises(ProviderNotReady, match="did you mean 'openai'") as caught:
        await answered(router(), "opnai/gpt-5")
    assert caught.value.model == "opnai/gpt-5"


async def test_without_a_guess_all_providers_are_listed() -> None:
    """A provider that is like none lists those that there are."""
    with pytest.raises(ProviderNotReady, match="there are: google, openai"):
        await answered(router(), "zzz/gpt-5")


class Keyless(Mapping[str, ModelProvider]):
    """Providers of which none can be made, because there is no key."""

    def __getitem__(self, name: str) -> ModelProvider:
        """Say so, by the name of the provider alone."""
        raise ProviderNotReady(name, "set KEY to your key")

    def __iter__(self) -> Iterator[str]:
        return iter(("openai", "google"))

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("openai/gpt-5", "set KEY to your key"),
        ("google/wirter", "set KEY to your key"),
        (
            "wirter",
            "set KEY to your key; if it was to be an alias, did you mean 'writer'?",
        ),
    ],
)
async def test_a_provider_that_is_not_ready_is_told_with_the_model(
    model: str, reason: str
) -> None:
    """And with the alias that may have been meant, if the provider was not chosen."""
    writer = {"writer": Alias(models=("google/gemini-3-pro",))}
    keyless = Router(Keyless(), aliases=writer, fallback="openai")
    with pytest.raises(ProviderNotReady) as caught:
        await answered(keyless, model)
    full = model if "/" in model else f"openai/{model}"
    assert (caught.value.model, caught.value.reason) == (full, reason)


async def test_a_bare_name_without_fallback_is_refused() -> None:
    """Where there is no fallback, a model needs its provider in front."""
    with pytest.raises(ProviderNotReady, match="no provider"):
        await answered(Router({"openai": Named("openai")}), "gpt-5")


def test_an_alias_stands_for_models_in_order() -> None:
    """Aliases expand in place, one inside the other, and keep the order."""
    names = router(
        fast=Alias(models=("small", "google/flash")),
        small=Alias(models=("openai/mini", "nano")),
    )

    found = [candidate.model for candidate in names.candidates("fast")]

    assert found == ["openai/mini", "openai/nano", "google/flash"]


def test_settings_of_the_outer_alias_win() -> None:
    """Who is asked for first knows best; what it leaves open, the inner one fills."""
    names = router(
        outer=Alias(models=("inner",), params=CreateResponse(temperature=0.1)),
        inner=Alias(
            models=("openai/a",),
            params=CreateResponse(temperature=0.9, top_p=0.5, extra=Extra({"seed": 1})),
        ),
    )

    (candidate,) = names.candidates("outer")

    assert candidate.params == CreateResponse(
        temperature=0.1, top_p=0.5, extra=Extra({"seed": 1})
    )


def test_a_name_that_is_no_alias_stands_for_itself() -> None:
    """A model's own name is its only candidate, with the provider in front."""
    (candidate,) = router().candidates("gpt-5")

    assert candidate.model == "openai/gpt-5"
    assert candidate.params == CreateResponse()


def test_an_alias_that_leads_back_to_itself_is_refused() -> None:
    """A circle is found when the router is made, and shown."""
    with pytest.raises(RequestError, match="a -> b -> a"):
        router(a=Alias(models=("b",)), b=Alias(models=("openai/x", "a")))


def test_an_alias_for_nothing_is_refused() -> None:
    """An empty list behind a name is found when the router is made."""
    with pytest.raises(RequestError, match="the alias a stands for no model"):
        router(a=Alias(models=()))


def test_aliases_that_name_each_other_twice_do_not_double() -> None:
    """Each name is in the list once, however many ways lead to it."""
    aliases = {f"a{i}": Alias(models=(f"a{i + 1}",) * 2) for i in range(40)}

    (candidate,) = router(**aliases).candidates("a0")

    assert candidate.model == "openai/a40"


def test_a_model_with_other_settings_is_another_candidate() -> None:
    """The same model can be asked in two ways, one after the other."""
    names = router(
        both=Alias(models=("cool", "warm", "cool")),
        cool=Alias(models=("openai/a",), params=CreateResponse(temperature=0.0)),
        warm=Alias(models=("openai/a",), params=CreateResponse(temperature=1.0)),
    )

    found = [candidate.params.temperature for candidate in names.candidates("both")]

    assert found == [0.0, 1.0]


def test_an_alias_that_comes_to_too_many_names_is_refused() -> None:
    """A chain and a list, and settings that double where names do not."""
    with pytest.raises(RequestError, match="a0 comes to more than 100 names"):
        router(**{f"a{i}": Alias(models=(f"a{i + 1}",)) for i in range(3000)})
    with pytest.raises(RequestError, match="all comes to more than 100 names"):
        router(all=Alias(models=tuple(f"openai/m{i}" for i in range(200))))
    ways: dict[str, Alias] = {}
    for i in range(30):
        below = (f"b{i}", f"c{i}")
        ways[f"a{i}"] = Alias(models=below)
        for name, key in zip(below, ("x", "y"), strict=True):
            params = CreateResponse(extra=Extra({f"{key}{i}": 1}))
            ways[name] = Alias(models=(f"a{i + 1}",), params=params)
    with pytest.raises(RequestError, match="a0 comes to more than 100 names"):
        router(**ways)
