"""Decks: prompt folders read as data, every mistake explained.

`load_deck` gives a frozen `Deck` and diagnostics; it asks a `DeckReader` for files and
does no I/O of its own. Read in the order in which a deck is read: `documents` takes a
file apart, `embedding` puts snippets in their places, `building` reads the keys,
`references` follows what they refer to, `roles` checks each deck against how it is
used, and `loader` walks the tree.
"""
