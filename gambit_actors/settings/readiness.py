"""Which models a name stands for, and whether they can be asked as things are set up.

Nothing is asked here. What can be told from settings alone is told before a run begins.
"""

import msgspec

from gambit_actors.deck.tables import did_you_mean
from gambit_actors.settings.model import SCRIPTED, Settings
from gambit_actors.settings.presets import OTHER_NAMES

NO_SCRIPT = (
    "give its replies with --script FILE, or name it after the file:"
    " scripted/path/to/script.toml"
)


def expanded(settings: Settings, model: str) -> tuple[str, ...]:
    """The models that a name stands for, each with its server, each once."""
    found: dict[str, None] = {}
    waiting, seen = [model], set[str]()
    while waiting:
        name = waiting.pop()
        alias = settings.aliases.get(name)
        if alias is None:
            found[_full_name(settings, name)] = None
        elif name not in seen:
            seen.add(name)
            waiting += reversed(alias.models)
    return tuple(found)


def _full_name(settings: Settings, name: str) -> str:
    if "/" in name or settings.fallback is None:
        return name
    return f"{settings.fallback}/{name}"


def lacks_of(settings: Settings, name: str) -> dict[str, str | None]:
    """What keeps each model that a name stands for from being asked, in their order.

    Of a name that is no alias, and for that reason alone the fallback's, it is said how
    it came to that: somebody may have mistyped it.
    """
    alias = settings.aliases.get(name)
    if alias is not None:
        found: dict[str, str | None] = {}
        for one in alias.models:
            found |= lacks_of(settings, one)
        return found
    (model,) = expanded(settings, name)
    lack = lack_of(settings, model)
    if lack is not None and model != name:
        lack = (
            f"{_no_alias(settings, name)}, so it is taken for a model of"
            f" {settings.fallback}, and {_missing(settings) or lack}"
        )
    return {model: lack}


def is_script_file(name: str) -> bool:
    """Whether a scripted model of this name is one that is named after its script."""
    return name.endswith((".toml", ".jsonl"))


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a name that settings do not know.

    Attributes:
        guess: what was meant, as a sentence; None if that cannot be guessed.
        listed: what there is instead, as a sentence.
    """

    words: str
    guess: str | None = None
    listed: str = ""


def unknown_in(settings: Settings, model: str) -> Unknown | None:
    """What is wrong with a model's name; None if a provider or an alias is in it.

    A name without a provider is the fallback's, if there is one. If it is like an alias
    it is taken for one all the same.
    """
    prefix, slash, _ = model.partition("/")
    if model in settings.aliases:
        return None
    if not slash:
        guess = did_you_mean(model, settings.aliases.keys())
        if guess is None and settings.fallback is not None:
            return None
        words = f"{model!r} is no alias, and no provider is named in it"
        advice = f"Write PROVIDER/{model}, such as openai/{model}."
        return Unknown(words=words, guess=guess, listed=advice)
    names = sorted({*settings.servers, *settings.plugins})
    if OTHER_NAMES.get(prefix, prefix) in (*names, SCRIPTED):
        return None
    return Unknown(
        words=f"there is no provider {prefix!r}",
        guess=did_you_mean(prefix, names),
        listed=f"There are {_listed(names)}.",
    )


def lack_of(settings: Settings, model: str) -> str | None:
    """What keeps a model from being asked, and what to do; None if nothing does.

    Args:
        settings: how things are set up.
        model: its name, with its server.
    """
    prefix, slash, name = model.partition("/")
    if not slash or not name:
        return (
            f"{_no_alias(settings, model)}, and no provider is named in it: write"
            f" PROVIDER/{prefix or 'MODEL'}, such as openai/{name or prefix or 'MODEL'}"
        )
    if prefix in settings.plugins:
        return None
    if prefix == SCRIPTED:
        return None if is_script_file(name) else NO_SCRIPT
    server = settings.servers.get(OTHER_NAMES.get(prefix, prefix))
    if server is not None:
        return server.lack
    unknown = unknown_in(settings, model)
    if unknown is None:
        return None
    return f"{unknown.words}. {unknown.guess or unknown.listed}"


def _no_alias(settings: Settings, name: str) -> str:
    guess = did_you_mean(name, settings.aliases.keys())
    meant = f" ({guess[0].lower()}{guess[1:]})" if guess else ""
    return f"{name!r} is no alias{meant}"


def _missing(settings: Settings) -> str | None:
    """Which variables the fallback lacks, in words; None if it lacks none."""
    server = settings.servers.get(settings.fallback or "")
    names = () if server is None else server.unset
    if not names:
        return None
    only = f"{names[0]} is not set"
    return only if len(names) == 1 else f"neither {' nor '.join(names)} is set"


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
