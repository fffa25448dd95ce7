"""Run prompt-folder agents (decks) as Trio actors, Open Responses on both sides."""
