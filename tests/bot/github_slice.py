"""Cuts GitHub's own OpenAPI description down to the requests that the bot sends: `python tests/bot/github_slice.py FILE`.

FILE is `generated/api.github.com.deref.json` of the npm package @octokit/openapi (MIT, see github_slice.LICENSE). What comes out,
github_slice.json, holds paths, parameters and request bodies, without descriptions, examples and answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

R = "/repos/{owner}/{repo}"
KEPT = {
    R: "get",
    f"{R}/installation": "get",
    f"{R}/pulls": "get post",
    f"{R}/pulls/{{pull_number}}": "get patch",
    f"{R}/pulls/{{pull_number}}/files": "get",
    f"{R}/pulls/{{pull_number}}/comments": "get",
    f"{R}/pulls/{{pull_number}}/reviews": "get post",
    f"{R}/issues": "get post",
    f"{R}/issues/{{issue_number}}": "get patch",
    f"{R}/issues/{{issue_number}}/labels": "post",
    f"{R}/issues/{{issue_number}}/comments": "get post",
    f"{R}/issues/comments/{{comment_id}}": "patch",
    f"{R}/issues/comments/{{comment_id}}/reactions": "post",
    f"{R}/collaborators/{{username}}/permission": "get",
    f"{R}/rules/branches/{{branch}}": "get",
    "/app": "get",
    "/app/installations/{installation_id}/access_tokens": "post",
    "/user": "get",
    "/users/{username}": "get",
    "/users/{username}/repos": "get",
    "/orgs/{org}/repos": "get",
}
NEEDLESS = ("description", "example", "examples", "externalDocs", "x-github", "title")


def slim(value: Any, *, names: bool = False) -> Any:
    """A schema without what is written for people; `names`: the keys are names of properties, so all of them stay."""
    if isinstance(value, dict):
        return {k: slim(v, names=k == "properties" and not names) for k, v in value.items() if names or k not in NEEDLESS}
    return [slim(v) for v in value] if isinstance(value, list) else value


def operation(found: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "in", "required", "schema", "x-multi-segment")
    out: dict[str, Any] = {"parameters": [{k: slim(p[k]) for k in kept if k in p} for p in found.get("parameters", [])]}
    if "requestBody" in found:
        schema = slim(found["requestBody"]["content"]["application/json"]["schema"])
        out["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return out


def main(source: str) -> None:
    whole = json.loads(Path(source).read_text(encoding="utf-8"))
    paths = {path: {verb: operation(whole["paths"][path][verb]) for verb in verbs.split()} for path, verbs in KEPT.items()}
    info = {key: whole["info"][key] for key in ("version", "title", "license")}
    text = json.dumps({"openapi": whole["openapi"], "info": info, "paths": paths}, separators=(",", ":"))
    Path(__file__).with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
