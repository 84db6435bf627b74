"""The patch of a dry run as people want to see it: plain for `git apply`, counted, with reasons, in colour."""

from __future__ import annotations

import os
import re
from pathlib import Path

from codemods.api.findings import Edit, Finding, claims
from ddpfix import diff
from ddpfix.escaping import visible
from ddpfix.results import Fixed

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? ")


def prefix_from(root: Path, folder: Path) -> str:
    """What to put before a path below `root` so that it is right from `folder`, "" at the root or outside it."""
    relative = os.path.relpath(root, folder).replace(os.sep, "/")
    return "" if relative == "." or relative.startswith("..") else relative + "/"


def plain(fixed: Fixed, prefix: str = "") -> bytes:
    return diff.patch({prefix + p: b for p, b in fixed.before.items()}, {prefix + p: b for p, b in fixed.after.items()})


def stat(fixed: Fixed) -> bytes:
    """`path | +added -removed` for each file."""
    rows = []
    width = max((len(diff.quoted(p)) for p in fixed.after), default=0)
    for path in sorted(fixed.after):
        body = diff.unified(path, fixed.before[path], fixed.after[path]).split(b"\n")[3:]
        added = sum(row.startswith(b"+") for row in body)
        removed = sum(row.startswith(b"-") for row in body)
        rows.append(f"{diff.quoted(path).ljust(width)} | +{added} -{removed}\n")
    return "".join(rows).encode()


def explained(fixed: Fixed, prefix: str = "") -> bytes:
    """The patch with the findings behind each hunk as lines above it; git skips them when it applies."""
    out: list[bytes] = []
    for path in sorted(fixed.after):
        rows = diff.unified(prefix + path, fixed.before[path], fixed.after[path]).split(b"\n")
        here = [f for f in fixed.fixed if any(e.path == path for e in f.edits)]
        told: set[str] = set()
        for row in rows:
            if match := _HUNK.match(row):
                start = int(match.group(1))
                end = start + int(match.group(2) or 1)
                for finding in here:
                    if finding.id not in told and any(_touches(e, path, start, end) for e in finding.edits):
                        told.add(finding.id)
                        out += reason_lines(finding)
            out.append(row + b"\n")
        if out and out[-1] == b"\n":
            out.pop()
    return b"".join(out)


def _touches(edit: Edit, path: str, start: int, end: int) -> bool:
    region = claims(edit)
    return edit.path == path and start <= region.end_line and region.line <= end


def reason_lines(finding: Finding) -> list[bytes]:
    lines = [f"# {finding.code} {finding.name} ({finding.applicability.value}): {finding.message}"]
    if finding.reason:
        lines.append(f"#   assumes: {finding.reason}")
    lines += [f"#   {e.text}" + (f" ({e.place})" if e.path else "") for e in finding.evidence]
    return [visible(" ".join(line.split())).encode("utf-8", "backslashreplace") + b"\n" for line in lines]


def colored(data: bytes) -> bytes:
    """The patch with git's own colours."""
    out = []
    for row in data.split(b"\n"):
        if row.startswith((b"diff ", b"--- ", b"+++ ")):
            out.append(b"\x1b[1m" + row + b"\x1b[m")
        elif row.startswith(b"@@"):
            out.append(b"\x1b[36m" + row + b"\x1b[m")
        elif row.startswith(b"+"):
            out.append(b"\x1b[32m" + row + b"\x1b[m")
        elif row.startswith(b"-"):
            out.append(b"\x1b[31m" + row + b"\x1b[m")
        elif row.startswith(b"# "):
            out.append(b"\x1b[33m" + row + b"\x1b[m")
        else:
            out.append(row)
    return b"\n".join(out)
