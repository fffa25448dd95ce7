"""The codes of everything that can be said about a deck.

A code keeps its meaning for good, and one that falls out of use is not given again.
`docs/reference/diagnostics.md` shows each with a bad and a good example.
"""

CODES: dict[str, str] = {
    "GD001": "There is no deck here: the file or its folder's PROMPT.md is missing.",
    "GD002": "The frontmatter is opened with +++ and never closed.",
    "GD003": "The frontmatter is not valid TOML.",
    "GD004": "The frontmatter is not TOML between +++ lines.",
    "GD005": "A file cannot be read as text.",
    "GD006": "A deck has a top-level execute, which was removed.",
    "GD007": "A deck declares mcpServers, which is reserved.",
    "GD008": "A deck declares onTool, which is set by the program that runs it.",
    "GD010": "A key is not known.",
    "GD011": "A value is not of the type that its key asks for.",
    "GD012": "A value is not one that its key allows.",
    "GD013": "A required key is missing.",
    "GD014": "A key has no effect where it stands.",
    "GD015": "A value under additionalParams has no JSON form.",
    "GD016": "A key under additionalParams is overruled by the key beside it.",
    "GD017": "A model is of a provider, or an alias, that no settings know.",
    "GD020": "An action does not have exactly one of path and execute.",
    "GD021": "A name is not one that a model can call.",
    "GD022": "A name is given twice.",
    "GD023": "A tool is shadowed by an action of the same name.",
    "GD024": "A name is taken by a built-in tool.",
    "GD025": "What an action takes or gives is not declared.",
    "GD026": "Two schemas of one action do not match.",
    "GD027": "The module that an action executes cannot be used.",
    "GD030": "A path points at a folder instead of its PROMPT.md.",
    "GD031": "A path does not point at a PROMPT.md.",
    "GD032": "A path points at a file that does not exist.",
    "GD033": "There is no built-in deck with this URI.",
    "GD034": "The same deck is listed twice.",
    "GD040": "A deck in this role must declare a schema.",
    "GD041": "A grader's schema is not compatible with the built-in one.",
    "GD042": "A scenario that answers in plain text has a schema for something else.",
    "GD043": "A deck that must respond does not have the respond snippet.",
    "GD044": "The prompt is empty.",
    "GD050": "An embedded file does not exist.",
    "GD051": "Snippets embed each other in a circle.",
    "GD052": "There is no built-in snippet with this URI.",
    "GD053": "An embedded file is not a Markdown snippet.",
    "GD054": "A snippet has handlers, which only a deck can have.",
    "GD055": "Snippets are nested too deeply, or make the prompt too large.",
    "GD056": "A snippet's fragment does not go with the schema.",
    "GD057": "INTENT.md or a policy is embedded, which are not for the model.",
    "GD058": "An image with a space in its target is not embedded.",
    "GD060": "A permission is not written in a form that can be read.",
    "GD061": "A reference asks for permissions that its deck does not have.",
    "GD062": "An action narrows permissions that its deck does not have at all.",
    "GD063": "A deck may write files that it is made from.",
    "GD080": "An old name of a list of decks is used.",
    "GD081": "An old name of a schema key is used.",
    "GD082": "An old name of a handler key is used.",
    "GD083": "An old card URI is used.",
    "GD084": "An old marker is used instead of a snippet.",
    "GD085": "A built-in deck is named without its PROMPT.md.",
    "GD086": "A deck's file is not called PROMPT.md.",
    "GD087": "An old name of a snippet is used.",
    "GD090": "A deck has no INTENT.md.",
}
"""Every code of this package, with what it means in one line."""

DEPRECATIONS = frozenset(
    {"GD080", "GD081", "GD082", "GD083", "GD084", "GD085", "GD086", "GD087", "GS043"}
)
"""What is on its way out: a warning below 1.0.0, an error from there on."""
