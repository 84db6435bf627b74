"""Options under which alone a program starts or joins ranks, and which nothing in its repository gives.

`if args.distributed: init_process_group()`, where `--distributed` is off by default, no command and no text has it, and no
file of settings turns it on. Whether the program is run on several processes is open then, though the repository launches
others so. A name that the file itself sets to False (`ddp = False`) is such an option, too.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.documented_starts import starts_of
from codemods.analysis.job_files.given_settings import set_values
from codemods.analysis.literals import is_none
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.store.project import Project

_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt", ".ipynb")
_YAML = (".yaml", ".yml")
_SETTINGS = (".json", ".toml", ".cfg", ".ini", ".txt", ".conf", ".gin")
_OFF = frozenset({"", "false", "no", "off", "none", "null", "0", "1"})  # 1 of a number of processes
_DEPTH = 3
_PLAIN = frozenset({"default", "type", "help", "metavar"})  # with which an option is None till it is given


class UngivenOptions:
    """The options of one program that nothing gives. switches: only those that a file sets to False itself."""

    def __init__(self, project: Project, program: SourceModule, *, switches: bool = False) -> None:
        self._switches = switches
        self._project = project
        self._program = program
        self._files = sorted(whole_program(project, program.path) | {program.path})
        self._known: dict[str, bool] = {}

    def followed(self, module: SourceModule, node: ast.AST) -> list[ast.AST] | None:
        """What is left of an `if` whose test is false in every run that the repository shows."""
        if isinstance(node, ast.If) and self.is_closed(module, node.test):
            return [node.test, *node.orelse]
        return None

    def is_closed(self, module: SourceModule, test: ast.expr) -> bool:
        """True for a test of a file that comes out as false in every run that the repository shows."""
        off = isinstance(test, ast.Name) and _is_switched_off(module, test)
        return off or (not self._switches and self.keep_out(test))

    def keep_out(self, test: ast.expr, depth: int = 0) -> bool:
        """True for a test of options that comes out as false in every run that the repository shows."""
        if isinstance(test, ast.BoolOp):
            parts = (self.keep_out(v, depth) for v in test.values)
            return all(parts) if isinstance(test.op, ast.Or) else any(parts)
        if isinstance(test, ast.Compare):
            limit = test.comparators[0]
            more = len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt) and isinstance(limit, ast.Constant) and limit.value == 1
            return more and self._is_off(test.left, depth, number=True)
        return self._is_off(test, depth, number=False)

    def stays_none(self, node: ast.expr) -> bool:
        """True for `args.max_steps`, an option that is None by itself, in every run that the repository shows."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return False
        name = node.attr
        asked = [c for m in self._modules(name) for c in m.calls_named("add_argument") if _is_option(c, name)]
        if not asked or not all(_is_none_by_default(c) for c in asked) or any(_stored(m, name) for m in self._modules(name)):
            return False
        return not self._is_in_a_command(name, len(asked)) and not self._is_in_settings(name)

    def _is_off(self, node: ast.expr, depth: int, *, number: bool) -> bool:
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or depth > _DEPTH:
            return False
        name = node.attr
        if name not in self._known:
            self._known[name] = False  # in a circle
            self._known[name] = self._is_given_by_nobody(name, depth, number=number)
        return self._known[name]

    def _is_given_by_nobody(self, name: str, depth: int, *, number: bool) -> bool:
        asked = [c for m in self._modules(name) for c in m.calls_named("add_argument") if _is_option(c, name)]
        if not all(_is_off_by_default(c, number=number) for c in asked):
            return False
        if self._is_in_a_command(name, len(asked)) or self._is_in_settings(name):
            return False
        stored = [v for m in self._modules(name) for v in _stored(m, name)]
        if number:
            return bool(asked)  # what a run on several processes stores there comes from a launcher
        return bool(asked or stored) and all(self._is_false(v, depth) for v in stored)

    def _is_false(self, value: ast.expr | None, depth: int) -> bool:
        if isinstance(value, ast.Constant):
            return value.value in (False, None)
        return value is not None and self.keep_out(value, depth + 1)

    def _modules(self, name: str) -> list[SourceModule]:
        holding = (p for p in self._files if name.encode() in (self._project.read(p) or b"") and not is_test_file(p))
        return [m for m in map(self._project.module, holding) if m is not None]

    def _is_in_a_command(self, name: str, asked: int) -> bool:
        """True where a text has the flag, or the program's own files have it in more places than those that ask for it."""
        project = self._project
        flag = re.compile(rb"(?<![\w-])--?" + re.escape(name.encode()).replace(b"_", b"[-_]") + rb"(?![\w-])(?![= ]1\b)")
        texts = {p for word in _spellings(name) for p in project.files_containing(word, kinds=_TEXTS)}
        if any(flag.search(project.read(p) or b"") for p in texts):
            return True
        if any(s.more for s in starts_of(project, self._program.path) or ()):
            return True  # `"$@"`: whoever calls the job file says
        return sum(len(flag.findall(project.read(p) or b"")) for p in self._files) > asked

    def _is_in_settings(self, name: str) -> bool:
        """True where settings give it another value; of YAML those of the program, where commands name them."""
        project, word = self._project, re.escape(name.encode())
        if any(re.search(rb"\b" + word + rb"[ \t]*=[ \t]*True\b", project.read(p) or b"") for p in self._files):
            return True
        own = set_values(project, self._program.path, name) if starts_of(project, self._program.path) else None
        kinds = _SETTINGS if own is not None else (*_SETTINGS, *_YAML)
        given = re.compile(rb"(?<![\w.-])[\"']?" + word + rb"[\"']?[ \t]*[:=](?!=)[ \t]*[\"']?(\w*)")
        held = (project.read(p) or b"" for p in project.files_containing(name.encode(), kinds=kinds))
        values = [*(own or ()), *(v.decode("utf-8", "replace") for data in held for v in given.findall(data))]
        return any(v.lower() not in _OFF for v in values)


def _is_switched_off(module: SourceModule, name: ast.Name) -> bool:
    """True for a name that the file sets to False or None, and nowhere to anything else."""
    bound = bindings_of(module, name)
    return bool(bound) and all(isinstance(b.value, ast.Constant) and b.value.value in (False, None) for b in bound)


def _spellings(name: str) -> tuple[bytes, ...]:
    return tuple({name.encode(), name.replace("_", "-").encode()})


def _is_option(call: ast.Call, name: str) -> bool:
    texts = (a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
    return any(t.startswith("-") and t.lstrip("-").replace("-", "_") == name for t in texts)


def _is_off_by_default(call: ast.Call, *, number: bool) -> bool:
    """True for `store_true`, and for an option whose default is false; of a number for one that is one at most."""
    given = {k.arg: k.value for k in call.keywords}
    default, action = given.get("default"), given.get("action")
    value: object = None
    try:
        value = ast.literal_eval(default) if default is not None else None
    except ValueError:
        return False
    if number:
        return isinstance(value, int) and value <= 1
    if value is None:
        return isinstance(action, ast.Constant) and action.value == "store_true"
    return value is False or value == 0


def _is_none_by_default(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    return given.keys() <= _PLAIN and (given.get("default") is None or is_none(given["default"]))


def _stored(module: SourceModule, name: str) -> list[ast.expr | None]:
    """What a file puts into the field itself, None where that is not told."""
    nodes = (n for n in module.nodes(ast.Attribute) if n.attr == name and isinstance(n.ctx, ast.Store) and dotted(n))
    made = [module.parent(n) for n in nodes]
    return [s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else None for s in made]
