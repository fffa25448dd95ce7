"""What is kept between loadings, and for how long."""

from collections import Counter

from gambit_actors.deck.loader import DeckCache, load_deck
from gambit_actors.deck.model import Deck, Link, Module
from gambit_actors.deck.pieces import Recent
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.keywords import Schema
from tests.deck.reading import Texts, deck_text

ACTION = deck_text(
    'contextSchema = "../a.json"\nresponseSchema = "../b.json"\nrespond = true',
    "Do it. ![](../snippet.md)",
)
ROOT = deck_text(
    """
    contextSchema = "a.json"
    [[actions]]
    name = "one"
    description = "One."
    path = "one/PROMPT.md"
    [[actions]]
    name = "two"
    description = "Two."
    path = "./two/../one/PROMPT.md"
    """,
    "Hello. ![](snippet.md) ![](snippet.md)",
)


def texts() -> Texts:
    """A small tree in which everything is referred to more than once."""
    return Texts(
        {
            "PROMPT.md": ROOT,
            "one/PROMPT.md": ACTION,
            "snippet.md": "Be kind.",
            "a.json": '{"type": "object"}',
            "b.json": '{"type": "string"}',
        }
    )


def action_deck(deck: Deck) -> Deck:
    """The deck of the first action."""
    target = deck.actions[0].target
    assert isinstance(target, Link)
    return target.deck


def test_no_file_is_read_twice_in_one_loading() -> None:
    """However often a file is referred to, a reader is asked for it once."""
    reader = texts()
    assert load_deck(reader, ".").diagnostics == ()
    assert sorted(reader.asked) == sorted(reader.files)


def test_one_loading_sees_one_state_of_a_file() -> None:
    """A file that changes while decks are read is seen as it was at first."""

    class Changing(Texts):
        def read_text(self, path: str) -> str | None:
            text = super().read_text(path)
            self.files[path] = "Changed."
            return text

    loaded = load_deck(Changing(texts().files), ".")
    assert loaded.diagnostics == ()
    assert loaded.usable().prompt == "Hello. Be kind. Be kind."


def test_what_has_not_changed_is_handed_out_again() -> None:
    """The second loading is the very same object, and asks for each file once."""
    cache, reader = DeckCache(), texts()
    first = cache.load(reader, ".")
    reader.asked.clear()
    second = cache.load(reader, ".")
    assert second is first
    assert max(Counter(reader.asked).values()) == 1


def test_it_does_not_matter_which_reader_is_asked() -> None:
    """What is kept is kept by content, so a new reader of the same texts will do."""
    cache = DeckCache()
    assert cache.load(texts(), ".") is cache.load(texts(), ".")


def test_only_what_has_changed_is_done_again() -> None:
    """After a change the deck is new, and made from the pieces that are the same."""
    cache, reader = DeckCache(), texts()
    before = cache.load(reader, ".").usable()
    reader.files["b.json"] = '{"type": "number"}'
    reader.asked.clear()
    after = cache.load(reader, ".").usable()
    assert after is not before
    assert after.context_schema is before.context_schema
    old, new = action_deck(before), action_deck(after)
    assert new.context_schema is old.context_schema
    assert old.response_schema is not None
    assert new.response_schema is not None
    assert old.response_schema.schema == {"type": "string"}
    assert new.response_schema.schema == {"type": "number"}
    # Once to see that something has changed, and once to see one state of all.
    assert max(Counter(reader.asked).values()) <= 2


def test_a_change_of_any_file_is_seen() -> None:
    """A prompt, a snippet and a schema: each makes another deck."""
    for file in texts().files:
        cache, reader = DeckCache(), texts()
        before = cache.load(reader, ".")
        text = reader.files[file]
        assert isinstance(text, str)
        reader.files[file] = text.replace("object", "array") + "\n \n"
        after = cache.load(reader, ".")
        assert after is not before
        reader.files[file] = text
        again = cache.load(reader, ".")
        assert again.deck == before.deck


def test_a_file_that_comes_and_goes_is_seen() -> None:
    """What was missing is found when it is there, and missed when it is not."""
    cache, reader = DeckCache(), texts()
    snippet = reader.files.pop("snippet.md")
    broken = cache.load(reader, ".")
    assert {d.code for d in broken.diagnostics} == {"GD050"}
    assert cache.load(reader, ".") is broken
    reader.files["snippet.md"] = snippet
    assert cache.load(reader, ".").diagnostics == ()
    del reader.files["one/PROMPT.md"]
    assert {d.code for d in cache.load(reader, ".").diagnostics} == {"GD032"}


def test_a_folder_that_becomes_a_file_is_seen() -> None:
    """Whether a path is a folder is asked again, too."""
    cache = DeckCache()
    text = deck_text('[[scenarios]]\npath = "./x"')
    missing = cache.load(Texts({"PROMPT.md": text}), ".")
    assert [d.code for d in missing.diagnostics] == ["GD031"]
    files = {"PROMPT.md": text, "x/PROMPT.md": "Hi."}
    now = cache.load(Texts(files), ".")
    assert "GD030" in [d.code for d in now.diagnostics]


def test_a_link_that_leads_elsewhere_is_seen() -> None:
    """Permissions follow links, so a link that changes makes another deck."""
    cache = DeckCache()
    files = {"PROMPT.md": deck_text('[permissions]\nread = ["./data"]')}
    before = cache.load(Texts(files, links={"/home/data": "/mnt/a"}), ".").usable()
    after = cache.load(Texts(files, links={"/home/data": "/mnt/b"}), ".").usable()
    assert before.permissions is not None
    assert after.permissions is not None
    assert (before.permissions.read, after.permissions.read) == (
        *(("/mnt/a",), ("/mnt/b",)),
    )


def test_policies_are_kept_apart() -> None:
    """The same deck loaded under both policies is two loadings."""
    cache = DeckCache()
    reader = Texts({"PROMPT.md": "![](gambit://respond)"})
    warned = cache.load(reader, ".", legacy="warn")
    refused = cache.load(reader, ".", legacy="refuse")
    assert (warned.deck is None, refused.deck is None) == (False, True)
    assert cache.load(reader, ".", legacy="warn") is warned


class Counting(Texts):
    """A reader that counts how often it has looked at a module."""

    described = 0

    def describe_module(self, path: str) -> DescribedModule:
        """Count, and give a module of the table."""
        self.described += 1
        return super().describe_module(path)


def module_of(deck: Deck) -> Module:
    """The module of the first action."""
    target = deck.actions[0].target
    assert isinstance(target, Module)
    return target


def test_a_module_is_looked_at_when_it_changes() -> None:
    """It is described anew if its text or that of a file it imports has changed."""
    text = deck_text('[[actions]]\nname = "a"\ndescription = "A."\nexecute = "m.py"')
    files = {"PROMPT.md": text, "m.py": "import near", "near.py": "1"}

    def described(kind: str) -> DescribedModule:
        schema: Schema = {"type": kind}
        return DescribedModule(
            context_schema=schema, response_schema=schema, files=("near.py",)
        )

    cache = DeckCache()
    reader = Counting(files, modules={"m.py": described("string")})
    first = cache.load(reader, ".").usable()
    reader.files["PROMPT.md"] = text + "\nMore."
    assert module_of(cache.load(reader, ".").usable()).path == "m.py"
    assert reader.described == 1
    reader.files["near.py"] = "2"
    reader.modules["m.py"] = described("number")
    second = cache.load(reader, ".").usable()
    assert reader.described == 2
    assert module_of(first).context_schema.schema == {"type": "string"}
    assert module_of(second).context_schema.schema == {"type": "number"}


def test_a_module_that_fails_is_looked_at_again() -> None:
    """Why an import fails may not be in any file, so a failure is not kept."""
    text = deck_text('[[actions]]\nname = "a"\ndescription = "A."\nexecute = "m.py"')
    cache, reader = DeckCache(), Texts({"PROMPT.md": text, "m.py": ""})
    assert [d.code for d in cache.load(reader, ".").diagnostics] == ["GD027"]
    schema: Schema = {"type": "string"}
    reader.modules["m.py"] = DescribedModule(
        context_schema=schema, response_schema=schema
    )
    assert cache.load(reader, ".").diagnostics == ()


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    """A table of recent things stays as small as it is told to."""
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
