"""The runs of a Hydra program that a project shows: its primary file of settings, what commands choose instead, each experiment.

`@hydra.main(config_path="../configs", config_name="train.yaml")` and `python train.py trainer=ddp experiment=large`. A value that
is put together, or that the shell decides, is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from codemods.analysis.job_files.documented_starts import script_names, starts, starts_of
from codemods.analysis.job_files.shown_run import UNKNOWN, Keys, ShownRun
from codemods.analysis.names import qualified
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_Held = str | None | list["_Held"] | dict[str, "_Held"]

_PACKAGE = lazy(r"^\s*#\s*@package\s+(\S+)")
_GIVEN = lazy(r"(?<!\S)(?P<sign>\+{0,2}|~)(?P<key>[\w./@]+)=(?P<value>\"[^\"]*\"|'[^']*'|\S*)")
_PLACEHOLDER = lazy(r"[$<{]|\.\.\.")
_MORE = lazy(r"(?<![\w=])\$\{?(?:@|\*|\w+)|(?<!\S)\.\.\.(?!\S)")  # words that stand for others, but for the value of a key
_Asked = tuple[dict[str, str], dict[Keys, str | None], bool]  # choices, values, whether a launcher starts several
_SEVERAL_GPUS = lazy(r"(?:gp\w*|devices?)=[\"']?\[\s*\d+\s*,\s*\d")  # also by a key that no settings have
_SAYS = lazy(rb"(?m)^[ \t]*[^#\s{-]")
_EXPERIMENT = "experiment"
_DEEPEST, _MOST = 6, 200


@record
class HydraProgram:
    """path: the file. folder: of its settings; primary: the file there, without its end."""

    path: str
    folder: str
    primary: str


def hydra_program(project: Project, path: str) -> HydraProgram | None:
    """The program of a file that Hydra starts with settings of the project, each named by a plain text."""
    if b"hydra" not in (project.read(path) or b""):
        return None
    return project.keep(("hydra program", path), lambda: _find_program(project, path))


def _find_program(project: Project, path: str) -> HydraProgram | None:
    module = project.module(path)
    calls = [c for c in module.nodes(ast.Call) if _is_main(module, c)] if module is not None else []
    if len(calls) != 1:
        return None
    given = {k.arg: k.value for k in calls[0].keywords}
    names = dict(zip(("config_path", "config_name"), calls[0].args, strict=False))
    where, name = (_text(given.get(key, names.get(key))) for key in ("config_path", "config_name"))
    if not where or not name or ":" in where:
        return None
    folder = normpath(join(dirname(path), where))
    primary = _plain_name(name)
    return HydraProgram(path, folder, primary) if _file(project, folder, primary) else None


def _is_main(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func) in ("hydra.main", "hydra.main.main")


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _plain_name(name: str) -> str:
    return name.removesuffix(".yaml").removesuffix(".yml")


def _file(project: Project, folder: str, name: str) -> str:
    """The file of a choice, "" where there is none: it is left to be written, or comes with a plug-in."""
    found = (f"{folder}/{_plain_name(name)}{end}" for end in (".yaml", ".yml"))
    return next((p for p in map(normpath, found) if p in project.files), "")


def hydra_runs(project: Project, program: HydraProgram) -> tuple[ShownRun, ...]:
    """With its settings as they are, with each experiment, and as commands say; nothing where that is not told."""
    return project.keep(("hydra runs", program.path), lambda: tuple(_runs(project, program)))


def _runs(project: Project, program: HydraProgram) -> list[ShownRun]:
    commands = starts_of(project, program.path)
    top = f"{program.folder}/{_EXPERIMENT}/"
    there = [_plain_name(p[len(top) :]) for p in sorted(project.files) if p.startswith(top) and p.endswith((".yaml", ".yml"))]
    primary = _read(project, _file(project, program.folder, program.primary))
    taken = any(group == _EXPERIMENT for group, _, _ in _defaults(primary, ""))
    there = [name for name in there if taken and not _is_of_others(project, program, name)]
    if commands is None or any(_MORE.search(c.given) for c in commands):
        return []
    asked: list[_Asked] = [({}, {}, False), *(({_EXPERIMENT: name}, {}, False) for name in there)]
    for command in commands:
        choices, values = _overrides(project, program, command.given)
        named = choices.get(_EXPERIMENT)
        stands_for_any = named is not None and not _file(project, program.folder, f"{_EXPERIMENT}/{named}")
        chosen = [{**choices, _EXPERIMENT: name} for name in there] if stands_for_any and there else [choices]
        several = command.several or _SEVERAL_GPUS.search(command.given) is not None
        asked += [(each, values, several) for each in chosen]
    if len(asked) > _MOST:
        return []
    return [_Composed(project, program, *one).run() for one in asked]


def _is_of_others(project: Project, program: HydraProgram, experiment: str) -> bool:
    """True for an experiment that commands give to another program, and none to this one."""

    def build() -> dict[str, frozenset[str]]:
        out: dict[str, set[str]] = {}
        for start in starts(project):
            if _EXPERIMENT in start.given:
                named = (m["value"].strip("\"'") for m in _GIVEN.finditer(start.given) if m["key"] == _EXPERIMENT)
                for name in named:
                    out.setdefault(_plain_name(name), set()).add(start.script)
        return {name: frozenset(scripts) for name, scripts in out.items()}

    given = project.keep("experiments that commands give", build).get(experiment, frozenset())
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

    def run(self) -> ShownRun:
        for group, choice in list(self._choices.items()):
            self._take_choices(f"{group}/{choice}", 1)
        self._take_choices(self._program.primary, 0)
        self._add("", self._program.primary, 0)
        for group, choice in self._choices.items():
            if group not in self._groups:  # `+experiment=large`
                self._choose(group, choice, 0)
        return ShownRun({**self._values, **self._given}, tuple(self._files), self._several)

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
        return _read(self._project, _file(self._project, self._program.folder, name))

    def _add(self, group: str, name: str, depth: int) -> None:
        path = _file(self._project, self._program.folder, f"{group}/{name}".lstrip("/"))
        if not path or depth > _DEEPEST:
            return
        self._files[path] = None
        data = _read(self._project, path)
        prefix = _package(self._project, path, group)
        if not data and _SAYS.search(self._project.read(path) or b""):
            self._values[prefix] = UNKNOWN  # what cannot be read
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
            self._add(group, _plain_name(choice), depth + 1)

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
