"""The page about settings has every key and every variable."""

import re
from pathlib import Path

import pytest
import tomli

from gambit_actors.providers.endpoints import Pace, Retries, Timeouts
from gambit_actors.settings.environment import FLAGS, PROXIES
from gambit_actors.settings.model_tables import ALIAS_KEYS, PRICE_KEYS
from gambit_actors.settings.presets import OTHER_NAMES, PRESETS
from gambit_actors.settings.provider_tables import (
    ANTHROPIC_KEYS,
    DIALECTS,
    FLAVOURS,
    SERVER_KEYS,
)
from gambit_actors.wiring.dialects import dialect_of
from tests.settings.reading import read

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
VARIABLES = {
    *FLAGS,
    *PROXIES.values(),
    *(name for server in PRESETS.values() for name in server.key_names),
    *(name for server in PRESETS.values() for name in server.url_names),
}


def marked() -> set[str]:
    """What stands in code marks on the page."""
    text = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", text))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(VARIABLES, id="variables"),
        pytest.param({*PRESETS, *OTHER_NAMES}, id="providers"),
        pytest.param(
            {server.base_url for server in PRESETS.values()} - {""}, id="addresses"
        ),
        pytest.param(SERVER_KEYS, id="keys of a server"),
        pytest.param(DIALECTS, id="dialects"),
        pytest.param({f for known in FLAVOURS.values() for f in known}, id="flavours"),
        pytest.param(ALIAS_KEYS, id="keys of an alias"),
        pytest.param(PRICE_KEYS, id="keys of a price"),
        pytest.param(
            {
                "adaptive" if field == "is_adaptive" else field
                for kind in (Pace, Retries, Timeouts)
                for field in kind.__struct_fields__
            },
            id="keys of tables in a server",
        ),
    ],
)
def test_the_page_names_them_all(names: set[str]) -> None:
    """Nobody has to read code to find one."""
    assert set(names) - marked() == set()


def test_the_page_names_no_variable_that_is_not_read() -> None:
    """What is promised there is there."""
    told = {name for name in marked() if re.fullmatch(r"[A-Z]+_[A-Z_]+", name)}
    assert told == VARIABLES


def test_the_example_on_the_page_can_be_used() -> None:
    """It has every key of a server, with the values that there are without it."""
    (example,) = re.findall(
        r"^```toml\n(\[providers\]\n.*?)^```",
        PAGE.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    acme = read(example).servers["acme"]
    assert acme.timeouts == Timeouts()
    assert acme.retries == Retries()
    providers = tomli.loads(example)["providers"]
    assert set(providers["acme"]) == set(SERVER_KEYS) - set(ANTHROPIC_KEYS)
    assert set(providers["anthropic"]) == set(ANTHROPIC_KEYS)
    dialect = dialect_of(read(example).servers["anthropic"])
    assert dialect == dialect_of(read().servers["anthropic"])
