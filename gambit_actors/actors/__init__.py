"""Decks at work: one actor for each invocation, and what they need around them.

`DeckActor` does what `run.next_step` decides. It lives in the nursery of whoever asked,
takes typed messages from its mailbox and stops when that is closed. `carrying_out` does
the calls of a turn side by side, `hook` asks the program around the run, `compute` runs
an author's code and `confined` keeps it to permissions. `runtime` is the door:
open one, run decks, hold sessions.
"""
