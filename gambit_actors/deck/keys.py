"""The keys of a deck, and which table the others belong to."""

TOP_LEVEL_KEYS = frozenset(
    {
        "actions",
        "allowEnd",
        "contextSchema",
        "graders",
        "guardrails",
        "handlers",
        "label",
        "modelParams",
        "permissions",
        "respond",
        "responseSchema",
        "scenarios",
        "startMode",
        "tools",
    }
)
"""The keys of a deck."""

MODEL_KEYS = (
    "frequency_penalty",
    "max_tokens",
    "model",
    "presence_penalty",
    "reasoning",
    "temperature",
    "top_p",
)
"""What can be asked of every model."""

GUARDRAIL_KEYS = ("maxCost", "maxDepth", "maxPasses", "maxTokens", "timeoutMs")

PERMISSION_KEYS = ("read", "write", "net", "env", "run")

HOMES = (
    dict.fromkeys((*MODEL_KEYS, "additionalParams"), "modelParams")
    | dict.fromkeys(GUARDRAIL_KEYS, "guardrails")
    | dict.fromkeys(PERMISSION_KEYS, "permissions")
    | dict.fromkeys(("onBusy", "onIdle", "onError"), "handlers")
)
"""The table that a key belongs to, for who wrote it at the top."""
