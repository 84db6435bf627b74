"""Which torch a repository is for: its pins, and what its texts, images and install scripts say where the pins leave it open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, dirname

from codemods.analysis.frameworks import Pin, is_run, or_by_companions, pins, torch_pin
from codemods.analysis.install_commands import INSTALL_KINDS, commands, documents, is_command, is_exact
from codemods.analysis.job_files.image_names import named_images
from codemods.analysis.job_files.installed_torch import torch_of_package
from codemods.analysis.job_files.job_pins import pin_of_job
from codemods.analysis.job_files.older_torch import ends_with
from codemods.analysis.job_files.said_python import said_python
from codemods.analysis.torch_companions import PACKAGES as COMPANIONS
from codemods.analysis.version_pins import Range, Version, padded, parse_version
from codemods.files.source import SourceModule
from codemods.files.text_file import IMAGE_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_LONGEST = 400_000
_STATED = lazy(
    r"(?i)(?<![\w.])(?:py)?torch(?:\]\([^)\s]*\))?[\"'`*]*(?:[ \t]+version)?[ \t]*(?:\([ \t]*)?"
    r"(?:(?:currently|only|is|was|has|been|we|have|code|tested|verified|developed|run|with|on|under|using|version)[ \t]+){0,6}"
    r"(?P<operator>>=|<=|~=|={1,2}|[><≥≤:|-])?[ \t]*"
    r"[\"'`*v]*(?P<version>(?:0\.[1-4]|1\.[2-9][0-2]|1\.1?\d|2\.\d\d?)(?!\d)(?:\.\d+)?)(?![\d%x])(?=(?P<behind>[^\n]{0,24}))"
)
_RUN_TOGETHER = lazy(r"^1\.([2-9])([0-2])$")  # "1.80", "1.71": no torch has such a number
_OR_LATER = lazy(r"(?i)[\"'`*)]*\s*(?:\+(?!cu|cpu)|(?:and|or)\s+(?:above|higher|newer|later|up|greater)|(?:to|-|–|~)\s*\d)")
_AND_BELOW = lazy(r"[\"'`]?\s*(?:,|and)?\s*(?P<operator><=?|≤)\s*(?P<version>\d\.\d+(?:\.\d+)?)")
_AT_LEAST = lazy(r"(?i)(?:at least|minimum|newer than|later than|above|since|≥|>=?)[^\n]{0,12}\Z")
_MARKUP = lazy(r"<[/!]?[A-Za-z][^<>\n]*>|^[ \t]*>+")  # `<br />`, and the sign of a quotation: no "newer than"
# `cudatoolkit=10.1`, `torch==1.7.1+cu101`, `https://download.pytorch.org/whl/cu101`
_CUDA = lazy(r"(?i)cudatoolkit[\"'` \t]*[=: ]{1,2}[\"' \t]*(?P<toolkit>\d+\.\d)|[+/]cu(?P<wheel>\d{2,3})(?!\d)")
# The first torch that was no longer built for it; "9" stands for every CUDA 9.
_ENDED: dict[str, Version] = {
    "9": (1, 8, 0), "10.0": (1, 5, 0), "10.1": (1, 9, 0), "10.2": (1, 13, 0), "11.0": (1, 8, 0), "11.1": (1, 11, 0),
    "11.3": (1, 13, 0), "11.6": (2, 0, 0),
}  # fmt: skip
_PAGES = (".md", ".rst")
_TEXTS = (*_PAGES, ".txt", *SHELL_KINDS, *YAML_KINDS, *IMAGE_KINDS)
_DOCS = ("docs", "doc", "documents", "documentation")
_DOCUMENTS = (*_DOCS, "docker", "install", "env", "envs", "environment", "requirements")
# Below those, `docs/en/install.md`, `docs/source/get_started/install.rst`
_SECTIONS = lazy(r"(?i)[a-z]{2}(?:[-_][a-z]{2,4})?|source|get(?:ting)?[-_]?started|install(?:ation)?")
_HISTORY = ("change", "history", "release", "news")


@record
class Said:
    """A range of versions, and where it is named. installed: a command names it exactly, `pip install torch==1.7.1`."""

    range: Range
    path: str
    line: int
    installed: bool = False


@record
class SaidTorch:
    """The versions that are named; none where nothing is said."""

    ranges: tuple[Said, ...]

    def surely_below(self, version: Version) -> bool:
        """True where an older one is named, and no newer one is or may be: an upper bound alone speaks for none."""
        counts = self._without_open_texts()
        return bool(self.names_below(version)) and all(s.range[0] is None or _is_below(s.range, version) for s in counts)

    def _without_open_texts(self) -> tuple[Said, ...]:
        """The ranges, but `torch>=1.7` where a command installs one version of it: that is the one that is there."""
        installed = [s for s in self.ranges if (s.installed or s.path.endswith(INSTALL_KINDS)) and None not in s.range]
        if not installed:
            return self.ranges
        return tuple(s for s in self.ranges if not (s.range[1] is None and not s.installed and _holds(s.range, installed)))

    def names_below(self, version: Version) -> str:
        """The file that names an older one and nothing else, "" where none does."""
        return next((s.path for s in self.ranges if _is_below(s.range, version)), "")

    def allows_below(self, version: Version) -> str:
        """The file that names or allows an older one, "" where none does."""
        wanted = padded(version)
        allows = (s.path for s in self.ranges if s.range[0] is not None and s.range[0] < wanted)
        return self.names_below(version) or next(allows, "")


def said_torch(project: Project, file: SourceModule, *, elsewhere: bool = True) -> SaidTorch:
    """What counts for a program or a job file. A pinned range says more than the texts where one version is left of it.

    What the program itself needs says more than both: what it imports ends with a version.

    elsewhere: the texts of other folders (a library that is carried along) count where those around the file say nothing.
    """
    ending = ends_with(project, file) if not isinstance(file, TextFile) else None
    if ending is not None:
        return SaidTorch((Said((None, ending.version), ending.path, ending.line),))
    pin = _of_job(project, file) if isinstance(file, TextFile) else torch_pin(project, near=file.path)
    if pin is not None and not isinstance(file, TextFile):
        pin = torch_of_package(project, file, pin) or pin
    pinned: tuple[Said, ...] = ()
    if pin is not None and (pin.minimum or pin.below) and not _is_text(pin.path):
        pinned = (Said((pin.minimum, pin.below), pin.path, pin.line),)
        if pin.below is not None and pin.minimum is not None:
            return SaidTorch(pinned)
    texts = project.keep(("said torch", dirname(file.path)), lambda: _of_texts(project, file.path))
    texts = texts if elsewhere else tuple(t for t in texts if _is_around(t.path, file.path))
    if pin is not None and texts and not _is_around(pin.path, file.path):
        pinned = ()  # a part of the project with a `setup.py` of its own
    ranges = (*pinned, *(t for t in texts if not any(_are_apart(t.range, p.range) for p in pinned)))
    return SaidTorch(ranges or _by_python(project, file))


def _of_job(project: Project, file: TextFile) -> Pin | None:
    return or_by_companions(pin_of_job(project, file, "torch"), [pin_of_job(project, file, name) for name in COMPANIONS])


def _by_python(project: Project, file: SourceModule) -> tuple[Said, ...]:
    """What the Python of the job leaves, which the job file names, or else a text around it."""
    if isinstance(file, TextFile) and (own := said_python(file.text)) is not None:
        return (Said(own.torch, file.path, own.line),)
    named = project.keep("texts that name an old Python", lambda: tuple(_old_pythons(project)))
    around = tuple(s for s in named if _is_around(s.path, file.path))
    return around or named


def _old_pythons(project: Project) -> Iterator[Said]:
    named = {p for word in (b"python", b"activate") for p in project.files_containing(word, kinds=_TEXTS)}
    for path in sorted(named):
        data = project.read(path) or b""
        stated = _says_what_is_installed(path) or path.endswith(SHELL_KINDS)
        if stated and len(data) <= _LONGEST and (found := said_python(data.decode("utf-8", "replace"))):
            yield Said(found.torch, path, found.line)


def _is_text(path: str) -> bool:
    """Instructions and scripts are older than the files that pins are for."""
    return documents(path) or commands(path)


def _are_apart(one: Range, other: Range) -> bool:
    return (other[0] is not None and _is_below(one, other[0])) or (one[0] is not None and _is_below(other, one[0]))


def _holds(allowed: Range, installed: list[Said]) -> bool:
    lowest = allowed[0]
    return lowest is not None and any(s.range[0] is not None and s.range[0] >= lowest for s in installed)


def _is_below(allowed: Range, version: Version) -> bool:
    return allowed[1] is not None and allowed[1] <= padded(version)


def _of_texts(project: Project, near: str) -> tuple[Said, ...]:
    """What the texts of the folders around a file say; of all texts where those say nothing."""
    said = project.keep("texts that name a torch", lambda: tuple(_all(project)))
    around = tuple(s for s in said if _is_around(s.path, near))
    return _with_own_install(around) or said


def _with_own_install(around: tuple[Said, ...]) -> tuple[Said, ...]:
    """The texts, without those above a folder that has a page of its own which installs a torch: that is what runs there."""
    own = max((_folder_of(s.path) for s in around if s.installed and s.path.endswith(_PAGES)), key=len, default="")
    return tuple(s for s in around if _folder_of(s.path).startswith(own))


def _is_around(path: str, near: str) -> bool:
    folder = _folder_of(path)
    return not folder or near.startswith(f"{folder}/")


def _folder_of(path: str) -> str:
    """The folder that a text speaks of."""
    folder = top = dirname(path)
    while _SECTIONS.fullmatch(basename(top)):
        top = dirname(top)
    folder = top if basename(top).lower() in _DOCS else folder
    while basename(folder).lower() in _DOCUMENTS:
        folder = dirname(folder)
    return folder


def _all(project: Project) -> Iterator[Said]:
    yield from (Said(image.range, image.path, image.line) for image in named_images(project))
    for pin in pins(project, "torch"):
        if commands(pin.path) and not _says_what_is_installed(pin.path) and is_exact(pin):
            yield Said((pin.minimum, pin.below), pin.path, pin.line, installed=True)
    named = {p for word in (b"orch", b"cudatoolkit") for p in project.files_containing(word, kinds=_TEXTS)}
    for path in sorted(named):
        data = project.read(path) or b""
        if not _says_what_is_installed(path) or len(data) > _LONGEST:
            continue
        text = data.decode("utf-8", "replace")
        for found in _STATED.finditer(text):
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
            commanded = found["operator"] in ("=", "==") and is_command(line)
            number = text.count("\n", 0, found.start()) + 1
            yield Said(_range(found, _MARKUP.sub(" ", line)[-30:]), path, number, commanded)
        for found in _CUDA.finditer(text):
            wheel = found["wheel"] or ""
            cuda = found["toolkit"] or f"{wheel[:-1]}.{wheel[-1]}"
            ended = _ENDED.get("9" if cuda.startswith("9.") else cuda)
            if ended is not None:
                yield Said((None, ended), path, text[: found.start()].count("\n") + 1)


def _says_what_is_installed(path: str) -> bool:
    name = basename(path).lower()
    if name.startswith(_HISTORY) or not (is_run(path) or path.startswith(("docs/", "doc/"))):
        return False
    if name.endswith((".md", ".rst")) or "dockerfile" in name:
        return True
    if name.endswith(".txt"):
        return documents(path)
    return any(word in name for word in ("install", "setup", "env", "conda"))


def _range(found: re.Match[str], before: str) -> Range:
    version = parse_version(_RUN_TOGETHER.sub(r"1.\1.\2", found["version"]))
    exact, operator = padded(version), found["operator"] or ""
    above = padded((*version[:-1], version[-1] + 1))
    if operator in (">=", ">", "≥") and (limit := _AND_BELOW.match(found["behind"])):
        last = parse_version(limit["version"])
        return exact, padded(last if limit["operator"] == "<" else (*last[:-1], last[-1] + 1))
    if operator in ("<", "<=", "≤"):
        return None, exact if operator == "<" else above
    if operator in (">=", ">", "≥", "~=") or _OR_LATER.match(found["behind"]) or _AT_LEAST.search(before):
        return exact, None
    return exact, above
