"""What happens next in a run: decided here, in plain functions, and done elsewhere.

A run is a list of entries. `RunState` is what they add up to, and nothing else;
`next_step` says what to do about it. `programs` makes of a deck what a model is
offered, `calls` looks at what the model asks for, `envelopes` words what comes back,
`budgets` counts what it costs. No I/O and no clock: whatever has a time or an id is
handed in.
"""
