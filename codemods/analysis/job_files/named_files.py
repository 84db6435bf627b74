"""Which file of the repository a command means: a path counts from the folder that the command runs in.

That is the folder of a `cd` above it; without one that of the job file, or one round it, up to the root: the nearest that has the
file. Where none has, a name is only evidence as long as one file bears it. Of a path from the root of somebody's machine as much
of its end counts as one file of the repository has.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath

from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_VARIABLE_FOLDER = lazy(r"^(?:[\"']?\$\{?\w+\}?[\"']?/)+")
_OWN_FOLDER = lazy(r"[\"']?\$\(\s*(?:cd\s+)?[\"']?\$?\(?\s*dirname\b.*\)[\"']?")  # `cd "$(dirname "$0")/.."`
_CHANGE = lazy(r"(?m)(?:^|[;&|])[ \t]*(?:cd|pushd)[ \t]+([^;&|\r\n#]+)")
_NOT_DOWN = lazy(r"^[\"']?[/~-]|\.\.|[$<{`%]")
_LITERAL = lazy(r"[\"']?([\w.][\w./-]*)[\"']?$")


def named_file(project: Project, job: str, written: str, above: str = "") -> str | None:
    """The file that a command of `job` starts; None where that is not to be told.

    written: the script as it stands there. above: the text of the job file before the command.
    """
    plain = _VARIABLE_FOLDER.sub("", written.strip("\"'"))
    if not plain or "$" in plain:
        return None
    if plain.startswith(("/", "~")):
        return _ending(project, plain)
    if plain == written.strip("\"'") and (moves := moved_to(above)) is not None:
        for folder in _folders(dirname(job)):
            path = normpath(join(folder, *moves, plain))
            if path in project.files:
                return path
    end = normpath(plain)
    while end.startswith("../"):
        end = end[3:]
    named = [p for p in project.python_files if p == end or p.endswith(f"/{end}")]
    return named[0] if len(named) == 1 else None


def nearest_file(project: Project, job: str, written: str) -> str | None:
    """The file that a command means where several bear its name: the only one below the nearest folder that has any.

    What begins in a folder that a variable names is not told.
    """
    end = normpath(written.strip("\"'"))
    while end.startswith("../"):
        end = end[3:]
    if not end or "$" in end or end.startswith(("/", "~")):
        return None
    named = [p for p in files_by_name(project).get(basename(end), ()) if p == end or p.endswith(f"/{end}")]
    for folder in _folders(dirname(job)):
        below = [p for p in named if not folder or p.startswith(f"{folder}/")]
        if below:
            return below[0] if len(below) == 1 else None
    return None


def files_by_name(project: Project) -> dict[str, list[str]]:
    """The Python files of the project by the last part of their path."""

    def build() -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for path in sorted(project.python_files):
            out.setdefault(basename(path), []).append(path)
        return out

    return project.keep("python files by name", build)


def _ending(project: Project, plain: str) -> str | None:
    """The file of the repository with the longest end of a path from a machine's root; None where several have it."""
    parts = plain.split("/")[1:]
    for at in range(len(parts)):
        end = "/".join(parts[at:])
        named = [p for p in project.python_files if p == end or (at == len(parts) - 1 and p.endswith(f"/{end}"))]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def leaves_its_folder(above: str) -> bool:
    """True for a text with a `cd` that need not lead down: `cd ..`, `cd $HOME/other`."""
    return any(_NOT_DOWN.search(change) for change in _CHANGE.findall(above))


def moved_to(above: str) -> list[str] | None:
    """The folders of the `cd`s of a text, in order; None where one of them goes to a folder that is not shown."""
    moves: list[str] = []
    for match in _CHANGE.finditer(above):
        written = match[1].strip()
        if own := _OWN_FOLDER.match(written):
            moves, written = [], written[own.end() :].strip("\"'").lstrip("/") or "."
        elif written == "-":
            moves = moves[:-1]
            continue
        literal = _LITERAL.match(written)
        if literal is None:
            return None
        moves.append(literal[1])
    return moves


def _folders(folder: str) -> Iterator[str]:
    """A folder and those round it, the root last."""
    while folder:
        yield folder
        folder = dirname(folder)
    yield ""
