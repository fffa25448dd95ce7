"""A proxy is for what is far away, and not for what is excepted."""

import pytest

from gambit_actors.settings.proxies import proxy_for

PROXIES = {"https": "http://secure:1", "all": "other:2"}


@pytest.mark.parametrize(
    ("url", "no", "proxy"),
    [
        ("https://a.test/v1", "", "http://secure:1"),
        ("http://a.test/v1", "", "http://other:2"),
        ("https://a.test", "b.test, a.test", None),
        ("https://x.a.test", "a.test", None),
        ("https://x.a.test", ".a.test", None),
        ("https://x.a.test", "*.a.test", None),
        ("https://ba.test", "a.test", "http://secure:1"),
        ("https://a.test:8443", "a.test:8443", None),
        ("https://a.test", "a.test:8443", "http://secure:1"),
        ("https://a.test", "*", None),
        ("https://10.1.2.3/v1", "10.0.0.0/8", None),
        ("https://11.1.2.3/v1", "10.0.0.0/8", "http://secure:1"),
        ("https://[2001:db8::1]/", "2001:db8::/32", None),
        ("http://localhost:11434/v1", "", None),
        ("http://127.0.0.2:11434/v1", "", None),
        ("http://[::1]:11434/v1", "", None),
    ],
)
def test_who_is_asked_through_a_proxy(url: str, no: str, proxy: str | None) -> None:
    """By scheme, with exceptions by name, port and network; never this machine."""
    assert proxy_for(url, PROXIES | {"no": no}) == proxy


def test_without_a_proxy_there_is_none() -> None:
    """Neither for a scheme that has none of its own."""
    assert proxy_for("https://a.test", {}) is None
    assert proxy_for("https://a.test", {"http": "http://p"}) is None
