"""The runs of a Hydra program that a project shows: its primary file of settings, what commands choose instead, each experiment.

`@hydra.main(config_path="../configs", config_name="train.yaml")` and `python train.py trainer=ddp experiment=large`. A value that
is put together, or that the shell decides, is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath

from codemods.analysis.job_files.documented_starts import Start, script_names, starts, starts_of
from codemods.analysis.job_files.hydra_programs import HydraProgram, plain_name, settings_file
from codemods.analysis.job_files.shown_run import UNKNOWN, Keys, ShownRun
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_Held = str | None | list["_Held"] | dict[str, "_Held"]

_PACKAGE = lazy(r"^\s*#\s*@package\s+(\S+)")
_GIVEN = lazy(r"(?<!\S)(?P<sign>\+{0,2}|~)(?P<key>[\w./@]+)=(?P<value>\"[^\"]*\"|'[^']*'|\S*)")
_PLACEHOLDER = lazy(r"[$<{]|\.\.\.")
_STANDS_FOR = lazy(r"(\$\{[^}]*\}|\$\w+|<[^>]*>|\{[^}]*\}|\.\.\.)")
_A_WORD = lazy(r"(?<!\S)[\"']?\$(?:\{(?P<braced>\w+)\}|(?P<bare>\w+))[\"']?(?!\S)")
_MORE = lazy(r"(?<![\w=])\$\{?(?:@|\*|\w+)|(?<!\S)\.\.\.(?!\S)")  # words that stand for others, but for the value of a key
_Asked = tuple[dict[str, str], dict[Keys, str | None], bool]  # choices, values, whether a launcher starts several
_SEVERAL_GPUS = lazy(r"(?:gp\w*|devices?)=[\"']?\[\s*\d+\s*,\s*\d")  # also by a key that no settings have
_SAYS = lazy(rb"(?m)^[ \t]*[^#\s{-]")
_EXPERIMENT = "experiment"
_DEEPEST, _MOST = 6, 600


def hydra_runs(project: Project, program: HydraProgram) -> tuple[ShownRun, ...]:
    """With its settings as they are, with each experiment, and as commands say; nothing where that is not told."""
    return project.keep(("hydra runs", program.path), lambda: tuple(_runs(project, program)))


def _runs(project: Project, program: HydraProgram) -> list[ShownRun]:
    commands = starts_of(project, program.path)
    top = f"{program.folder}/{_EXPERIMENT}/"
    every = [plain_name(p[len(top) :]) for p in sorted(project.files) if p.startswith(top) and p.endswith((".yaml", ".yml"))]
    primary = _read(project, settings_file(project, program.folder, program.primary))
    taken = any(group == _EXPERIMENT for group, _, _ in _defaults(primary, ""))
    there = [name for name in every if taken and not _is_of_others(project, program, every, name)]
    told = [_with_own_words(project, c) for c in commands or ()]
    if commands is None or len(there) > _MOST or any(_MORE.search(_GIVEN.sub("", given)) for given in told):
        return []
    asked: list[_Asked] = [({}, {}, False), *(({_EXPERIMENT: name}, {}, False) for name in there)]
    for command, given in zip(commands, told, strict=True):
        choices, values = _overrides(project, program, given)
        named = choices.get(_EXPERIMENT)
        stands_for_any = named is not None and not settings_file(project, program.folder, f"{_EXPERIMENT}/{named}")
        meant = (_named_like(there, given) or there) if stands_for_any else []
        chosen = [{**choices, _EXPERIMENT: name} for name in meant] if meant else [choices]
        several = command.several or _SEVERAL_GPUS.search(given) is not None
        asked += [(each, values, several) for each in chosen]
    if len(asked) > _MOST:
        return []
    found = [_Composed(project, program, *one).run() for one in asked]
    return [run for run in found if run is not None]


def _with_own_words(project: Project, command: Start) -> str:
    """What a command gives, with `KEY=…` in the place of `$CHOICE`, which the job binds once, be a part of it left open."""
    job = (project.read(command.job) or b"").decode("utf-8", "replace") if _A_WORD.search(command.given) else ""

    def bound(found: re.Match[str]) -> str:
        name = found["braced"] or found["bare"]
        written = re.findall(rf"(?<![\w$-]){name}\+?=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]*)", job)
        value = written[0].strip("\"'") if len(written) == 1 else ""
        return value if _GIVEN.fullmatch(value) else found[0]

    return _A_WORD.sub(bound, command.given)


def _named_like(there: list[str], given: str) -> list[str]:
    """The experiments that a command means: by its name, by the end of it where a folder has been moved, or by a part."""
    named = [m["value"].strip("\"'") for m in _GIVEN.finditer(given) if m["key"].partition("@")[0] == _EXPERIMENT]
    parts = plain_name(named[-1]).split("/") if named and "," not in named[-1] else []
    if "/".join(parts) in there:
        return ["/".join(parts)]
    for start in range(len(parts)):
        split = _STANDS_FOR.split("/".join(parts[start:]))
        wanted = "".join(".*" if _STANDS_FOR.fullmatch(piece) else re.escape(piece) for piece in split)
        if wanted.strip(".*/") and (found := [name for name in there if re.fullmatch(rf"(?:.*/)?{wanted}", name)]):
            return found
    return []


def _is_of_others(project: Project, program: HydraProgram, there: list[str], experiment: str) -> bool:
    """True for an experiment that commands give to another program, and none to this one."""

    def build() -> dict[str, frozenset[str]]:
        out: dict[str, set[str]] = {}
        for start in starts(project):
            for name in _named_like(there, start.given) if _EXPERIMENT in start.given else ():
                out.setdefault(name, set()).add(start.script)
        return {name: frozenset(scripts) for name, scripts in out.items()}

    given = project.keep(("experiments that commands give", program.folder), build).get(experiment, frozenset())
    return bool(given) and "" not in given and given.isdisjoint(script_names(program.path))


def _overrides(project: Project, program: HydraProgram, given: str) -> tuple[dict[str, str], dict[Keys, str | None]]:
    """(group -> choice, key -> value) of a command."""
    choices: dict[str, str] = {}
    values: dict[Keys, str | None] = {}
    for found in _GIVEN.finditer(given):
        key, value = found["key"].partition("@")[0], found["value"].strip("\"'")
        if _PLACEHOLDER.search(value) or ("," in value and not value.startswith("[")):
            value = UNKNOWN  # also of a sweep: one run for each
        if any(p.startswith(f"{program.folder}/{key}/") for p in project.files):
            choices[key] = value
        else:
            values[tuple(key.split("."))] = None if value in ("null", "None") else value
    return choices, values


class _Composed:
    """The settings of one run, put together as Hydra does: the later of two values holds, a choice of the command over all."""

    def __init__(
        self, project: Project, program: HydraProgram, choices: dict[str, str], given: dict[Keys, str | None], several: bool
    ) -> None:
        self._project = project
        self._program = program
        self._choices = dict(choices)
        self._given = given
        self._several = several
        self._values: dict[Keys, str | None] = {}
        self._files: dict[str, None] = {}
        self._groups: set[str] = set()
        self._ends = False

    def run(self) -> ShownRun | None:
        """None where Hydra cannot read one of its files, and ends."""
        for group, choice in list(self._choices.items()):
            self._take_choices(f"{group}/{choice}", 1)
        self._take_choices(self._program.primary, 0)
        self._add("", self._program.primary, 0)
        for group, choice in self._choices.items():
            if group not in self._groups:  # `+experiment=large`
                self._choose(group, choice, 0)
        return None if self._ends else ShownRun({**self._values, **self._given}, tuple(self._files), self._several)

    def _take_choices(self, name: str, depth: int) -> None:
        """`override /trainer: ddp` of an experiment, which holds for the whole run."""
        data = self._read(name)
        for group, choice, override in _defaults(data, ""):
            if override:
                self._choices.setdefault(group, choice or "")
        for group, choice, override in _defaults(data, ""):
            chosen = self._choices.get(group, choice)
            if not override and chosen and group and depth < 1:
                self._take_choices(f"{group}/{chosen}", depth + 1)

    def _read(self, name: str) -> dict[str, _Held]:
        return _read(self._project, self._file_of(name))

    def _file_of(self, name: str) -> str:
        """The file of a choice; where there is none, the one of this name in a folder below, into which it has been moved."""
        folder = self._program.folder
        if (there := settings_file(self._project, folder, name)) or "/" not in name:
            return there
        group, _, choice = name.rpartition("/")
        ends = tuple(f"/{plain_name(choice)}{end}" for end in (".yaml", ".yml"))
        moved = [p for p in self._project.files if p.startswith(normpath(f"{folder}/{group}") + "/") and p.endswith(ends)]
        return moved[0] if len(moved) == 1 else ""

    def _add(self, group: str, name: str, depth: int) -> None:
        path = self._file_of(f"{group}/{name}".lstrip("/"))
        if not path or depth > _DEEPEST:
            return
        self._files[path] = None
        data = _read(self._project, path)
        prefix = _package(self._project, path, group)
        if not data and _SAYS.search(self._project.read(path) or b""):
            self._values[prefix] = UNKNOWN  # what cannot be read
            self._ends = self._ends or _is_broken(self._project, path)
        own = {key: value for key, value in data.items() if key != "defaults"}
        placed = False
        for other, choice, override in _defaults(data, group):
            if choice == "_self_":
                self._put(prefix, own, certain=True)
                placed = True
                continue
            chosen = self._choices.get(other, choice) if other != group else choice
            if chosen and not override:
                self._choose(other, chosen, depth)
        if not placed:  # of the primary file it is the version of Hydra that says which of the two holds
            self._put(prefix, own, certain=depth > 0)

    def _choose(self, group: str, choice: str, depth: int) -> None:
        self._groups.add(group)
        if choice == UNKNOWN:
            self._values[() if group == _EXPERIMENT else tuple(group.split("/"))] = UNKNOWN
        else:
            self._add(group, plain_name(choice), depth + 1)

    def _put(self, prefix: Keys, own: _Held, *, certain: bool) -> None:
        if isinstance(own, dict):
            for key, value in own.items():
                self._put((*prefix, *key.split(".")), value, certain=certain)
            return
        value = f"[{','.join(str(v) for v in own)}]" if isinstance(own, list) else own
        if value is not None and "${" in value:
            value = UNKNOWN
        held = self._values.get(prefix, value)
        self._values[prefix] = value if certain or held == value else UNKNOWN


def _is_broken(project: Project, path: str) -> bool:
    """True for a file that is no YAML: an end that is missing, a conflict of two branches. A template is filled in first."""
    file = project.module(path)
    return isinstance(file, TextFile) and not file.documents and not any(mark in file.data for mark in (b"{{", b"{%"))


def _package(project: Project, path: str, group: str) -> Keys:
    head = (project.read(path) or b"")[:400].decode("utf-8", "replace").lstrip("\ufeff")
    named = _PACKAGE.match(head)
    if named is None or named[1] == "_group_":
        return tuple(group.split("/")) if group else ()
    return () if named[1] == "_global_" else tuple(named[1].split("."))


def _defaults(data: dict[str, _Held], group: str) -> Iterator[tuple[str, str | None, bool]]:
    """(group, choice, whether it overrides another file's) of each line of a defaults list, `_self_` among the choices."""
    listed = data.get("defaults")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, str):
            name = item.lstrip("/")
            top, _, last = name.rpartition("/")
            yield (top if item.startswith("/") else f"{group}/{top}".strip("/")), last, False
        elif isinstance(item, dict):
            for key, choice in item.items():
                words = key.split()
                name = words[-1].partition("@")[0]
                whole = name.lstrip("/") if name.startswith("/") or not group else f"{group}/{name}"
                for one in choice if isinstance(choice, list) else [choice]:
                    yield whole, one if isinstance(one, str) else None, "override" in words[:-1]


def _read(project: Project, path: str) -> dict[str, _Held]:
    file = project.module(path) if path else None
    documents = file.documents if isinstance(file, TextFile) else ()
    held = _held(documents[0], 0) if len(documents) == 1 else None
    return held if isinstance(held, dict) else {}


def _held(node: object, depth: int) -> _Held:
    """A node of PyYAML as plain data, scalars as their texts."""
    kind, value = getattr(node, "id", ""), getattr(node, "value", None)
    if depth > 12:
        return UNKNOWN
    if kind == "mapping":
        return {str(k.value): _held(v, depth + 1) for k, v in value or () if k.id == "scalar"}
    if kind == "sequence":
        return [_held(v, depth + 1) for v in value or ()]
    return None if str(getattr(node, "tag", "")).endswith(":null") else str(value)
