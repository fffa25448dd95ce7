"""Old names of things in decks, and what they are called now.

Here are only tables and what follows from them. Whether an old name warns or is
refused is for `Findings` to say, so there is one switch and it is not here.
"""

from gambit_actors.deck.builtin import DECK_SCHEME, SNIPPET_SCHEME

LISTS = {"actionDecks": "actions", "testDecks": "scenarios", "graderDecks": "graders"}
"""Lists of decks."""

SCHEMAS = {"inputSchema": "contextSchema", "outputSchema": "responseSchema"}
"""Schemas of a deck or an action."""

OLD_SCHEMAS = {new: old for old, new in SCHEMAS.items()}
"""The same, the other way round."""

FRAGMENTS = {"inputSchema": "contextFragment", "outputSchema": "responseFragment"}
"""Schemas of a snippet."""

_CARD_SCHEME = "gambit://cards/"
_CARD_ENDING = ".card.md"
# The marker named init after the tool gambit_init, which is gambit_context now. It is
# not the snippet init.md, which is about filling in what a scenario leaves out.
_MARKERS = {
    "gambit://init": "context.md",
    "gambit://respond": "respond.md",
    "gambit://end": "end.md",
}
_OLD_SNIPPETS = {"generate-test-input.md": "init.md"}


def modern_snippet(uri: str) -> tuple[str, str | None]:
    """What an embedded URI is called now, and the code to say if that is another."""
    if uri in _MARKERS:
        return SNIPPET_SCHEME + _MARKERS[uri], "GD084"
    if uri.startswith(_CARD_SCHEME) and uri.endswith(_CARD_ENDING):
        name = uri.removeprefix(_CARD_SCHEME).removesuffix(_CARD_ENDING) + ".md"
        return SNIPPET_SCHEME + _OLD_SNIPPETS.get(name, name), "GD083"
    name = uri.removeprefix(SNIPPET_SCHEME)
    if name in _OLD_SNIPPETS:
        return SNIPPET_SCHEME + _OLD_SNIPPETS[name], "GD087"
    return uri, None


def modern_deck(uri: str) -> tuple[str, str | None]:
    """What a built-in deck is called now, and the code to say if it is another."""
    if uri.startswith(DECK_SCHEME) and not uri.endswith(".md"):
        return uri.rstrip("/") + "/PROMPT.md", "GD085"
    return uri, None
