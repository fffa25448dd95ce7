"""Which models a name stands for, and whether they can be asked as things are set up.

Nothing is asked here. What can be told from settings alone is told before a run begins.
"""

from gambit_actors.deck.tables import did_you_mean
from gambit_actors.settings.model import SCRIPTED, Settings
from gambit_actors.settings.presets import OTHER_NAMES

NO_SCRIPT = "give its replies with --script FILE"


def expanded(settings: Settings, model: str) -> tuple[str, ...]:
    """The models that a name stands for, each with its server, each once."""
    alias = settings.aliases.get(model)
    if alias is not None:
        found = [full for name in alias.models for full in expanded(settings, name)]
        return tuple(dict.fromkeys(found))
    if "/" in model or settings.fallback is None:
        return (model,)
    return (f"{settings.fallback}/{model}",)


def lack_of(settings: Settings, model: str) -> str | None:
    """What keeps a model from being asked, and what to do; None if nothing does.

    Args:
        settings: how things are set up.
        model: its name, with its server.
    """
    prefix, slash, name = model.partition("/")
    if not slash or not name:
        return (
            f"{model!r} is no alias, and no provider is named in it: write"
            f" PROVIDER/{prefix or 'MODEL'}, such as openai/{name or prefix or 'MODEL'}"
        )
    if prefix in settings.plugins:
        return None
    if prefix == SCRIPTED:
        return NO_SCRIPT
    server = settings.servers.get(OTHER_NAMES.get(prefix, prefix))
    if server is not None:
        return server.lack
    names = sorted({*settings.servers, *settings.plugins})
    guess = did_you_mean(prefix, names)
    return f"there is no provider {prefix!r}. {guess or f'There are {_listed(names)}.'}"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
