"""What we test ourselves with, for those who write providers and dialects of their own.

`fake_server` is a model server on this machine that does as it is told. Nothing here
needs pytest, and nothing of it runs in production.
"""
