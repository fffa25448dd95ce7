"""Decks: prompt folders read as data."""
