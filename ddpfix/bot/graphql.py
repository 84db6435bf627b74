"""Many questions in one request: a forge's GraphQL interface, each question under a name of its own.

GitHub counts such a request as one point of 5,000 an hour, however many repositories it names
(docs.github.com, "Rate limits and query limits for the GraphQL API"). GitLab refuses what is too complex, 250 points of a
query (docs.gitlab.com/api/graphql, "Limits"), and says nothing of how it counts: a refused request is asked in halves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ddpfix.bot.client import Client, ForgeError

_TOO_MUCH = ("complexity", "too large", "timeout", "something went wrong")


def ask(client: Client, questions: Sequence[str], *, at_once: int) -> list[Any]:
    """The answer to each question (`repository(name: "x") { ... }`), None where the forge knows nothing of it.

    Raises ForgeError.
    """
    answers: list[Any] = []
    for first in range(0, len(questions), at_once):
        answers += _together(client, questions[first : first + at_once])
    return answers


def _together(client: Client, questions: Sequence[str]) -> list[Any]:
    query = "query {" + "".join(f"\nq{number}: {text}" for number, text in enumerate(questions)) + "\n}"
    try:
        said = client.ask("/graphql", {"query": query})
        if (data := said.get("data")) is None:
            raise ForgeError("POST /graphql", 200, complaint(said))
    except ForgeError as error:
        if len(questions) == 1 or not any(word in error.message.lower() for word in _TOO_MUCH):
            raise
        half = len(questions) // 2
        return [*_together(client, questions[:half]), *_together(client, questions[half:])]
    return [data.get(f"q{number}") for number in range(len(questions))]


def complaint(said: Any) -> str:  # noqa: ANN401 - what a forge answers is its own
    """The forge's own words for why there is no answer at all."""
    return "; ".join(str(error.get("message", "")) for error in said.get("errors") or ()) or "it holds no data"


def text(value: str) -> str:
    """A string as a query holds it: GraphQL takes JSON's strings (spec.graphql.org, String Value)."""
    return json.dumps(value)


def seconds(moment: str | None) -> float:
    """Seconds since 1970 of a moment as forges write it, 0 for none."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() if moment else 0.0
