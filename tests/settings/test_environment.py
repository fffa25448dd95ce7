"""Variables become servers, modes and proxies; what is wrong is told by its name."""

import pytest

from gambit_actors.errors import InvalidSettings
from gambit_actors.providers.endpoints import Secret
from gambit_actors.settings.environment import (
    environment_from_text,
    flags_from,
    proxies_from,
)
from gambit_actors.settings.presets import PRESETS
from tests.settings.reading import read, refusal


def test_without_anything_the_known_servers_are_there() -> None:
    """No variable and no file: six servers, and none of them has a key."""
    settings = read()
    assert sorted(settings.servers) == sorted(PRESETS)
    assert settings.fallback == "openrouter"
    assert settings.mode == "responses"
    assert all(server.key is None for server in settings.servers.values())


@pytest.mark.spec("OR-8")
@pytest.mark.parametrize(
    ("variable", "server"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("OPENROUTER_API_KEY", "openrouter"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GOOGLE_API_KEY", "google"),
        ("GEMINI_API_KEY", "google"),
        ("OLLAMA_API_KEY", "ollama"),
        ("OPENRESPONSES_API_KEY", "openresponses"),
    ],
)
def test_each_server_has_a_variable_for_its_key(variable: str, server: str) -> None:
    """A key goes to the one server it is for, and says where it is from."""
    settings = read(environment={variable: " k-1 "})
    have = {name: s.key for name, s in settings.servers.items() if s.key is not None}
    assert have == {server: Secret("k-1")}
    assert have[server].source == variable


@pytest.mark.parametrize(
    ("variable", "server"),
    [
        ("OPENAI_BASE_URL", "openai"),
        ("OPENROUTER_BASE_URL", "openrouter"),
        ("ANTHROPIC_BASE_URL", "anthropic"),
        ("GOOGLE_BASE_URL", "google"),
        ("GEMINI_BASE_URL", "google"),
        ("OLLAMA_BASE_URL", "ollama"),
        ("OPENRESPONSES_BASE_URL", "openresponses"),
    ],
)
def test_each_server_has_a_variable_for_its_address(variable: str, server: str) -> None:
    """An address replaces the known one, also the one in the file."""
    file = f'[providers.{server}]\nbase_url = "http://file.test"\n'
    for text in ("", file):
        settings = read(text, {variable: "http://here.test/v1/"})
        assert settings.servers[server].base_url == "http://here.test/v1"


def test_the_address_of_anthropic_may_lack_the_version() -> None:
    """That is how Anthropic's own programs want it."""
    settings = read(environment={"ANTHROPIC_BASE_URL": "http://here.test/a"})
    assert settings.servers["anthropic"].base_url == "http://here.test/a/v1"


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a", "a.test/v1", "http://", "https://me:pw@a.test", "http://a?x=1"),
        *("http://[::1/v1", "http://::1/v1", "http://[pw]/v1", "http://[]/v1"),
        *("http://a:0/v1", "http://a:99999/v1", "http://a:pw/v1", "http://:80/v1"),
        *("http://xn--/v1", "http://a..b/v1", "http://a<b/v1", "http://1.2.3.999/v1"),
    ],
)
def test_an_address_that_is_none_is_told_and_not_repeated(url: str) -> None:
    """There may be a password in it."""
    words = refusal(environment={"OPENAI_BASE_URL": url})
    assert words.startswith("OPENAI_BASE_URL is no base URL")
    assert "pw" not in words


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://a",
            "HTTPS://a.test:443/v1",
            "http://a_b-1:8080",
            "http://[::1]:80/v",
        ),
        *(
            "http://127.0.0.1:11434/v1",
            "http://bücher.test/v1",
            "http://xn--bcher-kva.d",
        ),
    ],
)
def test_an_address_may_be_a_name_or_numbers(url: str) -> None:
    """With a port or without one, in any language."""
    settings = read(environment={"OPENAI_BASE_URL": url})
    assert settings.servers["openai"].base_url == url


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_not_repeated(key: str) -> None:
    """A slip in copying is told before anything is sent."""
    words = refusal(environment={"OPENAI_API_KEY": key})
    assert words.startswith("OPENAI_API_KEY has characters in it that no key has")
    assert key not in words


def test_what_a_server_lacks_is_told_by_the_name_of_the_variable() -> None:
    """Nobody has to look up which variable it is."""
    servers = read().servers
    assert servers["google"].lack == "set GOOGLE_API_KEY or GEMINI_API_KEY to your key"
    lack = servers["openresponses"].lack
    assert lack == "set OPENRESPONSES_BASE_URL to the address of a server"
    assert servers["ollama"].lack is None


@pytest.mark.spec("OR-12")
@pytest.mark.parametrize(
    ("environment", "mode", "is_router_chat"),
    [
        ({}, "responses", False),
        ({"GAMBIT_RESPONSES_MODE": "1"}, "responses", False),
        ({"GAMBIT_RESPONSES_MODE": "0"}, "chat", True),
        ({"GAMBIT_CHAT_FALLBACK": "1"}, "chat", True),
        ({"GAMBIT_CHAT_FALLBACK": "0"}, "responses", False),
        ({"GAMBIT_CHAT_FALLBACK": " "}, "responses", False),
        ({"GAMBIT_OPENROUTER_RESPONSES": "0"}, "responses", True),
        (
            {"GAMBIT_CHAT_FALLBACK": "1", "GAMBIT_OPENROUTER_RESPONSES": "1"},
            "chat",
            False,
        ),
    ],
)
def test_flags_say_how_servers_are_asked(
    environment: dict[str, str], mode: str, is_router_chat: object
) -> None:
    """Responses mode is the default; chat mode takes the servers that know it along."""
    settings = read(environment=environment)
    assert settings.mode == mode
    router, openai = settings.servers["openrouter"], settings.servers["openai"]
    assert (router.dialect == "chat") == is_router_chat
    assert router.flavour == "openrouter"
    assert openai.dialect == ("chat" if mode == "chat" else "openai")
    assert settings.servers["anthropic"].dialect == "anthropic"


@pytest.mark.spec("OR-12")
def test_flags_that_disagree_are_explained() -> None:
    """Two opposite wishes are no guess; the command line settles them."""
    both = {"GAMBIT_CHAT_FALLBACK": "1", "GAMBIT_RESPONSES_MODE": "1"}
    assert refusal(environment=both) == (
        "GAMBIT_CHAT_FALLBACK=1 asks for chat mode, and GAMBIT_RESPONSES_MODE=1 for the"
        " opposite: unset one of them"
    )
    assert flags_from(both, responses=True).mode == "responses"
    assert flags_from(both, responses=False).mode == "chat"


@pytest.mark.parametrize(
    "name",
    ["GAMBIT_CHAT_FALLBACK", "GAMBIT_RESPONSES_MODE", "GAMBIT_OPENROUTER_RESPONSES"],
)
def test_a_flag_is_0_or_1(name: str) -> None:
    """What is meant by another word is not guessed."""
    words = refusal(environment={name: "yes"})
    assert words == f"{name} can be 0 or 1, and is something else"


def test_proxies_are_read_in_both_spellings() -> None:
    """Small letters count for more, as with other programs."""
    found = proxies_from(
        {
            "HTTPS_PROXY": "http://a:1",
            "https_proxy": "http://b:1",
            "ALL_PROXY": "http://c:1",
            "NO_PROXY": "localhost",
        }
    )
    assert found == {"https": "http://b:1", "all": "http://c:1", "no": "localhost"}


@pytest.mark.parametrize(
    "proxy",
    [
        *("socks5://127.0.0.1:1080", "::garbage", "http://", "http://[::1", "ftp://pw"),
        *("http://a:pw", "http://me:pw@", "http://a:0", "http://a/pw", "http://xn--"),
    ],
)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_that_is_none_is_told_and_not_repeated(name: str, proxy: str) -> None:
    """By the variable, before anybody is asked; there may be a password in it."""
    words = refusal(environment={name: proxy})
    assert words.startswith(f"{name} is no proxy that can be used, such as http://")
    assert "pw" not in words


@pytest.mark.parametrize(
    "others",
    [{"NO_PROXY": "*"}, {"HTTP_PROXY": "a:1", "HTTPS_PROXY": "http://me:x@[::1]:1/"}],
)
def test_a_proxy_that_nobody_is_asked_through_may_be_anything(
    others: dict[str, str],
) -> None:
    """Such as one that other programs know how to use."""
    found = proxies_from({"ALL_PROXY": "socks5://a:1"} | others)
    assert found["all"] == "socks5://a:1"


def test_a_file_of_variables_is_read_line_by_line() -> None:
    """Quotes, comments and export are understood, and nothing is filled in."""
    text = """\
# keys
export A=plain # why
B = "two words\\n\\"x\\"" # and a comment
C='$HOME \\n'
D=a#b
E=
"""
    assert environment_from_text(text, file=".env") == {
        "A": "plain",
        "B": 'two words\n"x"',
        "C": "$HOME \\n",
        "D": "a#b",
        "E": "",
    }


@pytest.mark.parametrize("line", ["A", "1A=x", "=x", 'A="open', "A='open"])
def test_a_line_that_is_no_variable_is_told_by_its_number(line: str) -> None:
    """And not by its text, which may be a key."""
    with pytest.raises(InvalidSettings) as raised:
        environment_from_text(f"OK=1\n{line}\n", file=".env")
    assert str(raised.value) == ".env:2: this line is not NAME=value"
