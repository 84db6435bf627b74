"""A fix as text for an editor, and back: the reviewer's own lines in its place, if the file still compiles with them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from codemods.engine.user_edits import EditedLines, in_place_of, lines_of
from codemods.store.project import Project
from ddpfix.review.items import Hunk, Replaced, ReviewItem, hunks_of

_MARK = re.compile(r"#@ (\d+)(?: .*)?")
_HEAD = """\
# {code} {name}: {place}
# The lines below are those that the fix would write. Change them, save and leave the editor: yours are written instead.
# Keep the lines that begin with "#@": they say where each block goes. Delete everything to change nothing.
"""


class NotTaken(Exception):
    """Why edited lines are not taken, in one line."""


def as_text(item: ReviewItem, written: Sequence[EditedLines] = ()) -> str:
    """What the editor is given: each block as the fix, or as an earlier edit, has it."""
    finding = item.finding
    out = [_HEAD.format(code=finding.code, name=finding.name, place=finding.place)]
    edited = {(e.path, e.line): e.after for e in written}
    for number, block in enumerate(item.replaced, 1):
        last = block.line + len(lines_of(block.before)) - 1
        out.append(f"#@ {number} {block.path} {block.line}-{max(last, block.line)}\n")
        text = "".join(_bare(line) + "\n" for line in lines_of(edited.get((block.path, block.line), block.after)))
        out.append(text)
    return "".join(out)


def from_text(item: ReviewItem, text: str) -> tuple[EditedLines, ...]:
    """The reviewer's lines, () where they are those of the fix, or all was deleted. Raises NotTaken."""
    blocks: dict[int, list[str]] = {}
    current: list[str] | None = None
    for line in lines_of(text):
        if line.startswith("#@"):
            match = _MARK.fullmatch(line.rstrip("\r\n"))
            number = int(match[1]) if match else 0
            if not 1 <= number <= len(item.replaced) or number in blocks:
                raise NotTaken(f"{line.strip()!r} is not one of the marks that were there")
            current = blocks[number] = []
        elif current is not None:
            current.append(_bare(line))
    if not blocks:
        return ()
    if len(blocks) != len(item.replaced):
        raise NotTaken("a line that begins with #@ is missing")
    rows = tuple(_row(block, blocks[number]) for number, block in enumerate(item.replaced, 1))
    return rows if any(row.after != block.after for row, block in zip(rows, item.replaced, strict=True)) else ()


def _row(block: Replaced, wanted: Sequence[str]) -> EditedLines:
    """Lines with the ends that the file has there."""
    ends = [line[len(_bare(line)) :] for line in lines_of(block.before) or lines_of(block.after)]
    end = next((e for e in ends if e), "\n")
    after = "".join(line + end for line in wanted)
    if ends and not ends[-1]:  # the last line of a file without its end
        after = after.removesuffix(end)
    return EditedLines(block.path, block.line, block.before, after)


def checked(item: ReviewItem, rows: Sequence[EditedLines], project: Project) -> tuple[Hunk, ...]:
    """The change that the reviewer's lines make. Raises NotTaken where a file would not compile, or be YAML or JSON, any more."""
    from codemods.rewriting.rewriter import RewriteError, replacements, rewrite

    placed = in_place_of(item.finding, rows, project)
    if isinstance(placed, str):
        raise NotTaken(placed)
    hunks: list[Hunk] = []
    for path in dict.fromkeys(e.path for e in placed.edits):
        module = project.module(path)
        edits = [e for e in placed.edits if e.path == path]
        if module is None:
            raise NotTaken(f"{path} cannot be read")
        try:
            rewrite(module, edits)
            hunks += hunks_of(path, module.lines, replacements(module, edits))
        except RewriteError as error:
            raise NotTaken(str(error)) from None
    return tuple(hunks)


def in_editor(text: str, suffix: str) -> str:
    """The text as the user's editor ($VISUAL, $EDITOR, else vi) leaves it. Raises NotTaken where the editor fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="ddpfix-") as folder:
        path = Path(folder) / f"fix{suffix}"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            done = subprocess.run([*shlex.split(command), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise NotTaken(f"the editor {command!r} cannot be run ({error}): set EDITOR") from None
        if done.returncode:
            raise NotTaken(f"the editor {command!r} ended with status {done.returncode}")
        return path.read_text(encoding="utf-8")


def _bare(line: str) -> str:
    return line.rstrip("\r\n")
