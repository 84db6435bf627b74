"""From what the one who runs the bot gives to a forge: which, where, and how to log in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ddpfix.bot.client import Clock
from ddpfix.bot.forge import Forge
from ddpfix.bot.login import AppLogin, FixedToken, Login, NoLogin, from_file_or_environment

TOKENS = {
    "github": ("DDPFIX_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"),
    "gitlab": ("DDPFIX_TOKEN", "GITLAB_TOKEN"),
    "gitea": ("DDPFIX_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN"),
}
SECRETS = ("DDPFIX_WEBHOOK_SECRET",)


@dataclass(frozen=True, slots=True)
class Given:
    """forge: github, gitlab or gitea (Forgejo, too). api_url: "" for the public one.

    author: `Name <address>` of the commits, "" for the usual.
    """

    forge: str = "github"
    api_url: str = ""
    token_file: Path | None = None
    app_id: str = ""
    app_key_file: Path | None = None
    author: str = ""


def connect(given: Given, clock: Clock) -> Forge:
    """The forge. Raises NoLogin."""
    if given.forge not in TOKENS:
        raise NoLogin(f"there is no forge {given.forge!r}", "the bot knows three", "Give --forge github, gitlab or gitea.")
    api_url = given.api_url or _public(given.forge)
    refuse_cleartext(api_url)
    identity = _identity(given.author)
    app_id = given.app_id or os.environ.get("DDPFIX_APP_ID", "")
    if given.forge == "github" and app_id:
        file = given.app_key_file or (Path(name) if (name := os.environ.get("DDPFIX_APP_KEY_FILE")) else None)
        key = from_file_or_environment(file, ("DDPFIX_APP_KEY",), "the App's key")
        if not key:
            raise NoLogin("the App has no key", "neither --app-key-file nor DDPFIX_APP_KEY is given", "Give one of them.")
        return forge_of("github", AppLogin(app_id, key, api_url=api_url, clock=clock), api_url, clock, identity)
    token = from_file_or_environment(given.token_file, TOKENS[given.forge], "the token")
    if not token:
        names = " or ".join(TOKENS[given.forge])
        raise NoLogin("there is no token", f"none of {names} is set, and no --token-file", "Set one, or give --app-id.")
    return forge_of(given.forge, FixedToken(token), api_url, clock, identity)


def forge_of(kind: str, login: Login, api_url: str, clock: Clock, identity: tuple[str, str] | None = None) -> Forge:
    """A forge of one of the kinds in `TOKENS`. identity: of the commits, None for the usual."""
    from ddpfix.bot.gitea import Gitea
    from ddpfix.bot.github import GitHub
    from ddpfix.bot.gitlab import GitLab

    match kind:
        case "gitlab":
            return GitLab(login, clock=clock, api_url=api_url, identity=identity)
        case "gitea":
            return Gitea(login, clock=clock, api_url=api_url, identity=identity)
    return GitHub(login, clock=clock, api_url=api_url, identity=identity)


def _public(kind: str) -> str:
    from ddpfix.bot import gitea, github, gitlab

    return {"github": github.API, "gitlab": gitlab.API, "gitea": gitea.API}[kind]


def refuse_cleartext(url: str) -> None:
    """Raises NoLogin for an address to which a token would travel readable for everybody on the way."""
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise NoLogin("the address holds a password", "everybody here can read it", "Give the token by DDPFIX_TOKEN or a file.")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
        raise NoLogin(f"{url} is not used", "a token would go there unencrypted", "Give an address that begins with https://.")


def _identity(author: str) -> tuple[str, str] | None:
    if not author:
        return None
    name, _, rest = author.partition("<")
    if not name.strip() or "@" not in rest or not rest.endswith(">"):
        raise NoLogin(f"{author!r} is no author", "it has no name, or no address", "Write it as 'Name <address>'.")
    return name.strip(), rest.removesuffix(">").strip()
