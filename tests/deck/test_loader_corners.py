"""Corners of loading that were wrong once."""

import gc
import time

import pytest

from gambit_actors.deck.loader import DeckCache, load_deck, load_decks
from gambit_actors.deck.reader import DescribedModule, DescribedType
from gambit_actors.errors import InvalidDeck
from tests.deck.reading import Texts, deck_text, found, load


@pytest.mark.parametrize("key", ["guardrails.maxDepth", "modelParams.top_p"])
def test_a_huge_number_is_not_raised(key: str) -> None:
    """A number that no float can hold is a mistake and not a crash."""
    assert load(deck_text(f"{key} = {10**400}")).diagnostics


def test_many_warnings_do_not_hide_an_error() -> None:
    """Only so many warnings are kept, and they do not push out an error."""
    keys = "\n".join(f"zzz{n} = 1" for n in range(201))
    with pytest.raises(InvalidDeck):
        load(deck_text(keys + '\nstartMode = "x"')).usable()


def test_a_module_with_an_old_uri_is_noticed() -> None:
    """An old schema URI in a module counts like one in a deck."""
    text = deck_text('[[actions]]\nname = "a"\ndescription = "A."\nexecute = "m.py"')
    module = DescribedModule(
        context_schema="gambit://schemas/graders/respond.ts",
        response_schema={"type": "string"},
    )
    reader = Texts({"PROMPT.md": text, "m.py": ""}, modules={"m.py": module})
    assert load_deck(reader, ".", legacy="refuse").deck is None


@pytest.mark.spec("DK-19")
@pytest.mark.parametrize("file", ["INTENT.md", "policy/a.md", "policy/x/b.md"])
def test_intent_and_policy_are_not_sent(file: str) -> None:
    """A prompt cannot embed the intent or a policy of its deck."""
    loaded = load({"PROMPT.md": f"Hi. ![]({file})", file: "Secret."})
    assert found(loaded) == [("GD057", 1, 9)]
    assert loaded.deck is None


def test_a_schema_that_is_not_text_cannot_be_used() -> None:
    """A schema with bytes that are not text makes the deck unusable."""
    text = deck_text('contextSchema = "a.json"')
    loaded = load({"PROMPT.md": text, "a.json": '{"description": "\udcff"}'})
    assert [code for code, *_ in found(loaded)] == ["GD005"]
    assert loaded.deck is None


def test_an_unreadable_file_that_becomes_empty_is_seen() -> None:
    """A file that could not be read and is empty now is read again."""
    cache, reader = DeckCache(), Texts({"PROMPT.md": "x ![](s.md)", "s.md": OSError()})
    assert cache.load(reader, ".").deck is None
    reader.files["s.md"] = ""
    assert cache.load(reader, ".").deck is not None


def test_a_schema_with_an_error_is_declared() -> None:
    """A schema that cannot be read is not said to be missing as well."""
    text = '[[{0}]]\nname = "a"\ndescription = "A."\npath = "a/PROMPT.md"'
    child = 'contextSchema = "no.json"\nresponseSchema = "no.json"\nrespond = true'
    files = {
        "PROMPT.md": deck_text(text.format("actions")),
        "a/PROMPT.md": deck_text(child),
    }
    assert {code for code, *_ in found(load(files))} == {"GS040"}


def test_a_missing_path_does_not_hide_other_mistakes() -> None:
    """A missing path does not hide the mistakes beside it."""
    loaded = load(deck_text("[[graders]]\ndescription = true"))
    assert sorted(code for code, *_ in found(loaded)) == ["GD011", "GD013"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["./x.py", "gambit://respond", "PROMPT.md"])
def test_many_findings_take_linear_time(target: str) -> None:
    """Ten times the findings take about ten times as long."""

    def seconds(count: int) -> float:
        start = time.process_time()
        load(f"![]({target})\n" * count)
        return time.process_time() - start

    # The collector looks through whatever other tests have left: that is not counted.
    gc.collect()
    gc.disable()
    try:
        small = min(seconds(2_000) for _ in range(3))
        large = min(seconds(20_000) for _ in range(2))
    finally:
        gc.enable()
    assert large < small * 30


@pytest.mark.slow
def test_many_decks_take_linear_time() -> None:
    """Ten times the decks take about ten times as long."""

    def seconds(count: int) -> float:
        text = 'contextSchema = "/s.json"\nresponseSchema = "/s.json"\nrespond = true\n'
        entry = (
            '[[actions]]\nname = "a{0}"\ndescription = "A."\npath = "/{0}/PROMPT.md"\n'
        )
        files = {f"/{n}/PROMPT.md": deck_text(text) for n in range(count)}
        files["PROMPT.md"] = deck_text("".join(map(entry.format, range(count))))
        files["/s.json"] = "{}"
        start = time.process_time()
        load(files)
        return time.process_time() - start

    small = min(seconds(400) for _ in range(2))
    assert seconds(4_000) < small * 25


def test_an_overruled_action_is_not_needed() -> None:
    """An action that the deck overrules may be broken."""
    action = '[[actions]]\nname = "a"\ndescription = "A."\npath = "/{}/PROMPT.md"'
    good = 'contextSchema = "/s.json"\nresponseSchema = "/s.json"\nrespond = true'
    files = {
        "PROMPT.md": deck_text(action.format("good"), "![](s.md)"),
        "s.md": deck_text(action.format("bad")),
        "/good/PROMPT.md": deck_text(good),
        "/bad/PROMPT.md": "+++",
        "/s.json": "{}",
    }
    assert load(files).deck is not None


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["![](a.md)", "![](a.py)", "![](gambit://respond)"])
def test_images_that_multiply_are_counted_whatever_they_are(inner: str) -> None:
    """Circles, code and old names count, so a few lines are not minutes of work."""
    start = time.process_time()
    loaded = load({"PROMPT.md": "![](a.md)" * 2_000, "a.md": inner * 2_000})
    assert time.process_time() - start < 5
    assert loaded.deck is None


def test_decks_that_refer_to_each_other_are_read_once_for_all() -> None:
    """However many decks of a circle are asked for, each file is read once."""
    count = 200
    files = {
        f"{n}/PROMPT.md": deck_text(
            f'[handlers.onError]\npath = "../{(n + 1) % count}/PROMPT.md"'
        )
        for n in range(count)
    }
    reader = Texts(files)
    loaded = load_decks(reader, list(files))
    assert loaded.diagnostics == ()
    assert None not in loaded.decks
    assert len(reader.asked) == count


def test_each_deck_that_is_asked_for_is_judged_alone() -> None:
    """A deck with an error leaves the others usable; what is missing is named."""
    reader = Texts({"a/PROMPT.md": "A.", "b/PROMPT.md": deck_text("label = 1")})
    decks, diagnostics = load_decks(reader, ["a", "b", "c"])
    assert [deck and deck.path for deck in decks] == ["a/PROMPT.md", None, None]
    assert [d.code for d in diagnostics] == ["GD001", "GD011"]


@pytest.mark.parametrize("mark", ["\ufeff\ufeff", "\ufeff\u200b", "\u200b"])
def test_unseen_marks_do_not_hide_the_frontmatter(mark: str) -> None:
    """What editors put at the start of a file does not turn settings into prompt."""
    deck = load(mark + deck_text('label = "A"')).usable()
    assert (deck.label, deck.prompt) == ("A", "Be kind.")


def test_old_line_ends_are_line_ends() -> None:
    """A file whose lines end in carriage returns alone is read like any other."""
    assert load(deck_text('label = "A"').replace("\n", "\r")).usable().label == "A"


def test_a_nul_is_not_text() -> None:
    """Text in another encoding, or no text at all, is not sent to a model."""
    assert found(load("Hi\0there")) == [("GD005", 1, 3)]


def test_a_backslash_in_a_folder_name_is_just_that() -> None:
    """On systems where it may be part of a name, it does not change the folder."""
    text = deck_text('[permissions]\nread = ["."]')
    deck = load({"a\\..\\b/PROMPT.md": text}, "a\\..\\b/PROMPT.md").usable()
    assert deck.permissions is not None
    assert deck.permissions.read == ("/home/a\\..\\b",)


def test_a_module_that_fails_is_tried_once() -> None:
    """One loading asks for the same type once, however many refer to it."""
    asked = []

    class Slow(Texts):
        def describe_type(self, path: str, name: str) -> DescribedType:
            asked.append(name)
            return super().describe_type(path, name)

    entry = '[[tools]]\nname = "t{0}"\ninputSchema = "m.py:T"\n'
    text = deck_text("".join(entry.format(n) for n in range(5)))
    loaded = load_deck(Slow({"PROMPT.md": text, "m.py": ""}), "PROMPT.md")
    assert [d.code for d in loaded.diagnostics] == ["GS046"] * 5
    assert asked == ["T"]
