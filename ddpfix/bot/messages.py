"""What a forge's webhook says of itself in its headers: whether it is signed, which delivery it is, what it is about."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ddpfix.bot import events, gitea_events, gitlab_events
from ddpfix.bot.events import Job

Jobs = Callable[[str, Mapping[str, Any], str], list[Job]]


@dataclass(frozen=True, slots=True)
class Messages:
    """The headers of one kind of forge. signature: with the right HMAC-SHA256 of the body behind `prefix`, or the secret itself
    where the forge signs nothing. delivery: the first of these that is there. jobs: (event, payload, branch prefix) -> the work.
    """

    signature: str
    delivery: tuple[str, ...]
    event: str
    jobs: Jobs
    prefix: str = ""
    is_secret: bool = False

    def may_be_right(self, secret: str, headers: Mapping[str, str]) -> bool:
        """What can be seen of a signature before the body is there."""
        said = headers.get(self.signature, "")
        if self.is_secret:
            return _same(secret, said)
        return re.fullmatch(re.escape(self.prefix) + r"[0-9a-f]{64}", said) is not None

    def is_right(self, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the message is from somebody who knows the secret."""
        wanted = secret if self.is_secret else self.prefix + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return _same(wanted, headers.get(self.signature, ""))

    def names(self, headers: Mapping[str, str]) -> tuple[str, str]:
        """(delivery, event), "" for what is not said."""
        delivery = next((headers[name] for name in self.delivery if headers.get(name)), "")
        return delivery, headers.get(self.event, "")


def _same(wanted: str, said: str) -> bool:
    return hmac.compare_digest(wanted.encode(), said.encode("utf-8", "replace"))


# docs.github.com, "Validating webhook deliveries"; docs.gitlab.com, "Webhooks", X-Gitlab-Token and Idempotency-Key;
# docs.gitea.com, "Webhooks" (Forgejo sends the same headers)
KINDS: Mapping[str, Messages] = {
    "github": Messages("x-hub-signature-256", ("x-github-delivery",), "x-github-event", events.jobs, prefix="sha256="),
    "gitlab": Messages(
        "x-gitlab-token", ("idempotency-key", "x-gitlab-event-uuid"), "x-gitlab-event", gitlab_events.jobs, is_secret=True
    ),
    "gitea": Messages("x-gitea-signature", ("x-gitea-delivery",), "x-gitea-event", gitea_events.jobs),
}
