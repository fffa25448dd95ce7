"""What people write at the top of a file that is not quite frontmatter.

Other tools use other marks and other notations, and TOML has its own ways to be
misunderstood. What would be taken for a part of the prompt, or answered with a parser's
own words, is recognised here.
"""

import re

from gambit_actors.deck.keys import TOP_LEVEL_KEYS

_BLANK = r"(?:[ \t]*\r?\n)*"
# What may stand above settings that somebody meant to be the first thing.
_ABOVE = re.compile(
    rf"{_BLANK}(?:(?:#[^\n]*|<!--(?:(?!-->).){{0,5000}}-->)\s*)*", re.DOTALL
)
_MARK = re.compile(
    r"(?P<mark>\+{3,}|-{3,}|```)[ \t]*(?P<word>\w*)[ \t]*\r?\n|(?P<brace>\{)"
)
_KEY = re.compile(
    r"\s*(?:#[^\n]*\n\s*)*(?:\[{0,2}|[\"'])(?P<key>[\w-]+)[\"'\]. \t]*(?P<sign>[:=\n])"
)

_WORDS: dict[str, tuple[str, str | None]] = {
    "Illegal character '\\n'": ("a string is not closed on its line", None),
    "Cannot overwrite a value": ("a key is given twice", None),
    "Expected '=' after a key in a key/value pair": (
        "a key must be followed by =",
        'Such as: label = "My deck".',
    ),
}
_TWICE = re.compile(r"Cannot declare \((?P<names>.*)\) twice")


def explained_toml(problem: str, rest: str) -> tuple[str, str | None]:
    """Say what is wrong with a text that is not TOML, and what may help.

    Args:
        problem: the parser's words.
        rest: the text where it gave up.
    """
    if problem in _WORDS:
        return _WORDS[problem]
    if twice := _TWICE.fullmatch(problem):
        name = ".".join(re.findall(r"'([^']*)'", twice["names"]))
        hint = f"A table of which there are several is written [[{name}]]."
        return f"the table [{name}] is here twice", hint
    if rest.lower().startswith(("true", "false")):
        return problem, "TOML writes true and false in small letters."
    return problem, "Text stands in quotes." if rest[:1].isalpha() else None


def other_frontmatter(text: str, start: int) -> int | None:
    """Where settings begin that will not be read as such; None if there are none.

    Three dashes also draw a line in Markdown, and a prompt may well begin with code,
    so what follows must look like settings: YAML with an end, or keys of a deck.
    """
    above = _ABOVE.match(text, start)
    mark = _MARK.match(text, above.end() if above else start)
    if mark is None:
        return None
    key = _KEY.match(text, mark.end())
    if key is None:
        return None
    fence = mark["mark"]
    is_known = key["key"] in TOP_LEVEL_KEYS
    if fence is None or fence == "```":
        is_notation = mark["word"] in (None, "", "toml", "yaml", "json")
        return mark.start() if is_known and is_notation else None
    is_closed = re.compile(rf"^{re.escape(fence)}[ \t]*\r?$", re.MULTILINE).search(
        text, mark.end()
    )
    # Below a drawn line comes a blank one; YAML begins at once.
    is_yaml = key["sign"] == ":" and not text[mark.end() :].startswith(("\n", "\r"))
    is_settings = is_known or is_yaml or fence.startswith("+")
    return mark.start() if is_closed and is_settings else None
