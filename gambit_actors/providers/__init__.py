"""Models: everything that answers a request, behind the one shape a run asks for.

`scripted` answers from a script, without a network; `scripts` is what a script is, and
`telling` makes events of it.
Each provider is a `gambit_actors.run.ports.ModelProvider`.
"""
