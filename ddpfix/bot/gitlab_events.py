"""A message of GitLab -> the work that it asks for (docs.gitlab.com, "Webhook events")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ddpfix.bot.commands import parse
from ddpfix.bot.events import Job
from ddpfix.bot.forge import Comment

_SLUG = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)+", re.A)


def jobs(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    """As `events.jobs`."""
    asked = _asked(event, payload, prefix)
    for job in asked:
        if not _SLUG.fullmatch(job.slug):
            raise ValueError("no path of a project")
    return asked


def _asked(event: str, payload: Mapping[str, Any], prefix: str) -> list[Job]:
    match event:
        case "Push Hook":
            project = payload["project"]
            is_base = payload["ref"] == f"refs/heads/{project['default_branch']}" and payload["after"].strip("0") != ""
            return [Job(project["path_with_namespace"])] if is_base else []
        case "Merge Request Hook":
            merge = payload["object_attributes"]
            # an update without `oldrev` brought no commit
            is_new = merge.get("action") in ("open", "reopen") or (merge.get("action") == "update" and "oldrev" in merge)
            own = merge["source_branch"].startswith(f"{prefix}/") and merge["source_project_id"] == merge["target_project_id"]
            return [Job(payload["project"]["path_with_namespace"], int(merge["iid"]))] if is_new and not own else []
        case "Note Hook":
            note = payload["object_attributes"]
            if note["noteable_type"] != "MergeRequest" or note.get("action", "create") != "create" or not parse(note["note"]):
                return []
            # nothing says whether he belongs to the project, so that is asked of the forge, after everything else that waits
            comment = Comment(int(note["id"]), note["note"], payload["user"]["username"], belongs=False)
            return [Job(payload["project"]["path_with_namespace"], int(payload["merge_request"]["iid"]), comment)]
        case "Issue Hook":
            issue = payload["object_attributes"]
            changed = issue.get("action") == "update" and "description" in payload.get("changes", {})
            ticked = changed and payload["user"]["id"] != issue["author_id"] and "[x] " in (issue["description"] or "")
            return [Job(payload["project"]["path_with_namespace"])] if ticked else []
    return []
