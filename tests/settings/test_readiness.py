"""What a name stands for, and what is missing before it can be asked."""

import pytest

from gambit_actors.settings.readiness import expanded, lack_of, lacks_of
from tests.settings.reading import read

ALIASES = """\
[models.aliases]
small = { model = ["openai/mini", "local"] }
local = { model = ["ollama/llama3", "openai/mini"] }
"""


def test_a_name_stands_for_models_with_their_servers() -> None:
    """Aliases are followed; what names no server is the fallback's."""
    settings = read(ALIASES)
    assert expanded(settings, "small") == ("openai/mini", "ollama/llama3")
    assert expanded(settings, "gpt-5") == ("openrouter/gpt-5",)
    none = read('[providers]\nfallback = "none"\n')
    assert expanded(none, "gpt-5") == ("gpt-5",)


@pytest.mark.parametrize(
    ("model", "lack"),
    [
        ("openai/gpt-5", None),
        ("ollama/llama3", None),
        ("acme/large", None),
        ("gemini/pro", "set GOOGLE_API_KEY or GEMINI_API_KEY to your key"),
        ("anthropic/claude", "set ANTHROPIC_API_KEY to your key"),
        ("scripted/x", "give its replies with --script FILE"),
        ("scripted/x.toml", None),
        ("opneai/gpt-5", "there is no provider 'opneai'. Did you mean openai?"),
        ("gpt-5", "write PROVIDER/gpt-5, such as openai/gpt-5"),
    ],
)
def test_what_is_missing_is_told(model: str, lack: str | None) -> None:
    """By the name of the variable, or what was meant."""
    settings = read("", {"OPENAI_API_KEY": "k"}, plugins=("acme",))
    found = lack_of(settings, model)
    assert found == lack or (lack is not None and found is not None and lack in found)


def test_a_provider_that_is_like_none_is_told_with_those_there_are() -> None:
    """All of them, as there are few."""
    lack = lack_of(read(), "far/away")
    assert lack == (
        "there is no provider 'far'. There are anthropic, google, ollama, openai,"
        " openresponses and openrouter."
    )


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("openai/mini", {"openai/mini": "set OPENAI_API_KEY to your key"}),
        (
            "smal",
            {
                "openrouter/smal": "'smal' is no alias (did you mean small?), so it is"
                " taken for a model of openrouter, and OPENROUTER_API_KEY is not set"
            },
        ),
        (
            "gpt-5",
            {
                "openrouter/gpt-5": "'gpt-5' is no alias, so it is taken for a model of"
                " openrouter, and OPENROUTER_API_KEY is not set"
            },
        ),
        (
            "local",
            {"ollama/llama3": None, "openai/mini": "set OPENAI_API_KEY to your key"},
        ),
    ],
)
def test_a_name_that_is_no_alias_says_how_it_came_to_its_model(
    name: str, lacks: dict[str, str | None]
) -> None:
    """Somebody may have mistyped it; of names with a provider there is no doubt."""
    assert lacks_of(read(ALIASES), name) == lacks


def test_all_variables_that_would_do_are_named() -> None:
    """One of them is enough; where there is a key, nothing is missing."""
    google = ALIASES + '[providers]\nfallback = "google"\n'
    (lack,) = lacks_of(read(google), "pro").values()
    assert lack is not None
    assert lack.endswith("and neither GOOGLE_API_KEY nor GEMINI_API_KEY is set")
    assert lacks_of(read(google, {"GEMINI_API_KEY": "k"}), "pro") == {
        "google/pro": None
    }
    none = read(ALIASES + '[providers]\nfallback = "none"\n')
    (lack,) = lacks_of(none, "smal").values()
    assert lack is not None
    assert lack.startswith("'smal' is no alias (did you mean small?), and no provider")


def test_aliases_that_name_each_other_twice_do_not_double() -> None:
    """Each name is followed once, however many ways lead to it."""
    lines = [f'a{i} = {{ model = ["a{i + 1}", "a{i + 1}"] }}' for i in range(40)]
    settings = read("[models.aliases]\n" + "\n".join(lines))
    assert expanded(settings, "a0") == ("openrouter/a40",)
