"""The settings as a JSON schema, by which an editor completes them and marks what is wrong."""

from __future__ import annotations

from typing import Any

from codemods.analysis.mention_places import KINDS
from ddpfix.settings import FAIL_ON, IN_FILES, Settings

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_SWITCH = {"type": "boolean"}
_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "select": (_TEXTS, "Codes, prefixes, names and topics to run; everything but tuning if left out."),
    "ignore": (_TEXTS, "Codes, prefixes, names and topics to leave out."),
    "extend_select": (_TEXTS, "Codes, prefixes, names and topics to run beside those of select."),
    "unsafe_fixes": (_SWITCH, "Make the fixes that rest on an assumption, too."),
    "exclude": (_TEXTS, "Globs of paths that are left alone."),
    "per_file_ignores": ({"type": "object", "additionalProperties": _TEXTS}, "Globs of paths, each with the codes to leave out."),
    "fail_on": ({"enum": list(FAIL_ON)}, "The level from which check exits with 1."),
    "branch": (_TEXT, "The branch on which apply commits."),
    "format_command": (_TEXT, "A formatter for copies of the changed files; it runs only where the user lets it."),
    "bot": (_SWITCH, "false: the pull-request bot leaves this repository alone."),
    "rewrites": (
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {kind: {"type": "object", "additionalProperties": _TEXT} for kind in KINDS},
        },
        "The project's own renames: by kind, the old name and the new one.",
    ),
    "plugins": (_TEXTS, "Python files of the project with codemods of its own; they run only where the user lets them."),
    "target_lightning": (
        {"type": "string", "pattern": r"^(\d+(\.\d+)*)?$"}, "The version of Lightning to upgrade to, whatever is pinned."
    ),
    "launched": (_SWITCH, "All programs are started on several processes, whatever the texts say."),
    "check_copies": (_SWITCH, "Vendored folders and copies of packages are checked as the project's own code."),
}  # fmt: skip


def schema() -> dict[str, Any]:
    """Of `ddpfix.toml`, and of `[tool.ddpfix]`."""
    plain = Settings()
    rows = {}
    for name in IN_FILES:
        kind, said = _KEYS[name]
        value = getattr(plain, name)
        default = {} if value is None else {"default": list(value) if isinstance(value, tuple) else value}
        rows[name.replace("_", "-")] = {"description": said, **kind, **default}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of ddpfix",
        "type": "object",
        "additionalProperties": False,
        "properties": rows,
    }
