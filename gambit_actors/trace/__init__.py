"""What happened in a run: typed events, and where they go.

Every step of a run is an event with a time, a run and a place in the tree of calls.
What begins also ends, also when it fails or is cancelled. `events` is the vocabulary,
`sinks` are where events can go, `trees` makes spans of a flat list.
"""
