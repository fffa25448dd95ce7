"""An author's code kept to its permissions: in a process of its own, by the kernel.

`rules` says what has to be enforced and what cannot be; `preparing` looks up the files
that takes; `pool` keeps processes warm and `process` is one of them, seen from here;
`messages` is what goes through the pipes. `worker` is the process: it restricts itself
(`landlock`, `seccomp`) before it imports the author's module, and cannot take it back.

The author's code is not trusted, and so nothing the process says is.
"""
