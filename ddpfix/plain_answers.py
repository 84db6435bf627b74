"""What a codemod asked, as a sentence for a person who has not read its code.

A question is a function with a docstring, which says what it answers ("True where …", "The loop round …"); its answer is yes, no
or nothing. Of one without, the words of its name ask, where they are those of a question (`is_muted`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

_ASKS = re.compile(r"(True|False) (where|if|for|unless|under|in|on|behind|outside of|while|when)\b\s*", re.IGNORECASE)
_OTHERWISE = re.compile(r",? (?:[Nn]one|\"\"|\(\)|none|True|False|\[\]) (?:where|for|if|of|unless)\b.*$")
_ONLY_NONE = re.compile(r"(?:None|Nothing|No \w+) where\s+")
_OUTSIDE_OF_CODE = r"(?=[^`]*(?:`[^`]*`[^`]*)*$)"  # an even number of backticks follows
_TURNED = {"yes": "no", "no": "yes"}


def sentence(docstring: str, parameters: Sequence[str], answer: str) -> str:
    """The question with its answer; "" where the docstring asks nothing that a person could follow.

    parameters: the names of the function's own values, which stand in its docstring as `node`. answer: yes, no or nothing; else
    what was found, in words.
    """
    first = _first_sentence(docstring)
    for name in parameters:
        first = first.replace(f"`{name}`", "it").replace("`it`", "it")
    if not first:
        return ""
    if (only := _ONLY_NONE.match(first)) is not None:
        return f"{_asked('where', first[only.end() :])}: {'yes' if answer == 'nothing' else 'no'}"
    asks = _ASKS.match(first)
    if answer == "nothing":
        wanted = _OTHERWISE.sub("", first)
        return "" if asks is not None else f"looked for {_lower(wanted)}: found none"
    if answer not in _TURNED:
        return "" if asks is not None else f"looked for {_lower(_OTHERWISE.sub('', first))}: {answer}"
    if asks is None:
        return ""
    turned = (asks[1].lower() == "false") is not (asks[2].lower() == "unless")
    return f"{_asked(asks[2].lower(), first[asks.end() :])}: {_TURNED[answer] if turned else answer}"


def asks_what_is_not(docstring: str) -> bool:
    """True for a question whose yes says that nothing is known against it (`False where …`)."""
    asks = _ASKS.match(_first_sentence(docstring))
    return asks is not None and asks[1].lower() == "false"


def sentence_of_name(name: str, answer: str) -> str:
    """The question that a name asks; "" where it asks none."""
    verb, _, rest = name.strip("_").partition("_")
    words = rest.replace("_", " ")
    if not words:
        return ""
    if verb in ("is", "has", "may", "can", "must"):
        return f"asked whether it {verb} {words}: {answer}"
    return f"asked whether it {verb} {words}: {answer}" if verb.endswith("s") and not verb.endswith("ss") else ""


def _asked(word: str, rest: str) -> str:
    rest = _OTHERWISE.sub("", rest)
    if word in ("where", "if", "unless", "when"):
        return f"asked whether {rest}"
    if word == "for":
        return f"asked whether this is {rest}"
    return f"asked whether this stands {word} {rest}"


@cache
def _first_sentence(docstring: str) -> str:
    """Up to the full stop, on one line; what explains it behind a colon or a semicolon is left."""
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    paragraph = re.sub(rf" \([^()`]*[:;]\s[^()`]*\){_OUTSIDE_OF_CODE}", "", paragraph)
    first = re.split(rf"\.(?:\s|$){_OUTSIDE_OF_CODE}", paragraph, maxsplit=1)[0]
    return re.split(rf"[:;]\s{_OUTSIDE_OF_CODE}", first, maxsplit=1)[0].strip()


def _lower(text: str) -> str:
    head, blank, rest = text.partition(" ")
    return f"{head.lower() if head[1:].islower() or len(head) == 1 else head}{blank}{rest}"
