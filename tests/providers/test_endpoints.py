"""The settings of model servers, and the keys in them."""

from gambit_actors.providers.endpoints import Secret


def test_a_key_is_not_shown_by_accident() -> None:
    """Printing, formatting and comparing a key do not give it away."""
    key = Secret("sk-planted", source="OPENAI_API_KEY")

    assert "sk-planted" not in f"{key} {key!r} {[key]}"
    assert "OPENAI_API_KEY" in repr(key)
    assert key.reveal() == "sk-planted"


def test_keys_are_equal_by_what_they_are() -> None:
    """Two keys are the same key if their text is, wherever it comes from."""
    assert Secret("a", source="X") == Secret("a")
    assert hash(Secret("a", source="X")) == hash(Secret("a"))
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
