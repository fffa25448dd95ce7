"""The languages that model servers speak, as plain functions of values.

A dialect turns a request into a body (`Dialect.render`) and what comes back into events
of Open Responses (`Dialect.reader`). It knows no server, no socket, no clock and no
key: bytes and values in, values out. `dialect` is the shape that all of them have.
"""
