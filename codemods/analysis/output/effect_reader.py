"""Reads what statements do, followed through the project's own functions and methods."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from codemods.analysis.class_index import ClassFacts, class_facts, overriding
from codemods.analysis.files.files_of_objects import dumps_config
from codemods.analysis.files.opened_paths import takes_path
from codemods.analysis.files.renamed_to_itself import renames_to_itself
from codemods.analysis.functions import find_function
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.output.effect_kinds import OUTPUT, Effect, Effects, Kind, names_rank
from codemods.analysis.output.given_objects import lines_without
from codemods.analysis.output.natures import MODEL_NAMES, Nature, nature, root_name, writes_a_picture
from codemods.analysis.output.print_in_scope import goes_to_terminal, is_print_of_python
from codemods.analysis.output.receivers import (
    classes_of,
    is_buffer,
    is_experiment,
    is_logger,
    is_of_an_experiment,
    is_script_module,
    mode_of,
    root_of,
    within,
)
from codemods.analysis.output.told_objects import lines_of_one_rank
from codemods.analysis.ranks.collectives import collective_call, collective_read
from codemods.analysis.ranks.rank_guards import decorated_ranks, ranks_at
from codemods.data import host_only
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace
from codemods.store.project import Project

DEPTH = 8
_METRIC_DICTS = frozenset({"callback_metrics", "logged_metrics", "progress_bar_metrics"})
_NO_OP_BASES = frozenset({"Callback", "LightningModule", "TrainerCallback", "LightningDataModule", "object", "ABC"})
_MODEL_CHANGES = frozenset(
    {"to", "cuda", "cpu", "float", "half", "double", "eval", "train", "freeze", "unfreeze", "zero_grad", "apply", "type",
     "requires_grad_", "load_state_dict", "toggle_optimizer", "untoggle_optimizer", "compile"}
)  # fmt: skip


# What alone can do something; most nodes are names and constants.
_SPEAKING = frozenset(
    {ast.Call, ast.Attribute, ast.Subscript, ast.Global, ast.Nonlocal, ast.Raise, ast.Assert, ast.Return, ast.Yield,
     ast.YieldFrom, ast.Await, ast.For, ast.comprehension}
)  # fmt: skip
_HANDLES = lazy(r"file|handle|log|out|stream|writer|csv|sink|^f[hpo]?$", re.IGNORECASE)  # what people call what they flush
_SPOILT = Effect(Kind.UNKNOWN, "", "", 0)


def _spoils(effect: Effect) -> bool:
    return effect.kind not in OUTPUT and effect.kind is not Kind.QUIET


def read_function(
    project: Project, module: SourceModule, function: FunctionNode, chain: tuple[int, ...], *, quick: bool = False
) -> Effects:
    if id(function) in chain:
        return Effects()
    if len(chain) >= DEPTH:
        return Effects((Effect(Kind.UNKNOWN, f"{function.name}(…), many calls down", module.path, function.lineno),))
    key = ("effects", module.path, function.lineno, function.name, quick)
    return project.keep(key, lambda: _read(project, module, function, (*chain, id(function)), quick=quick))


def _read(
    project: Project, module: SourceModule, function: FunctionNode, chain: tuple[int, ...], *, quick: bool
) -> Effects:
    found = Reader(project, module, chain, quick=quick).read(function.body)
    if decorated_ranks(module, function, project=project).some:
        return replace(found, items=tuple(replace(e, guarded=True) for e in found.items))
    if isinstance(function, ast.AsyncFunctionDef):
        unknown = Effect(Kind.UNKNOWN, f"the coroutine {function.name}", module.path, function.lineno)
        return replace(found, items=(*found.items, unknown))
    return found


class Reader:
    """Reads the statements of one function. quick: no further than the first thing that is not output."""

    def __init__(self, project: Project, module: SourceModule, chain: tuple[int, ...], *, quick: bool = False) -> None:
        self._project, self._module, self._chain, self._quick = project, module, chain, quick
        self._found: list[Effect] = []
        self._returns = False

    def read(self, nodes: Iterable[ast.AST]) -> Effects:
        if self._quick:
            return self._read_quickly([inner for node in nodes for inner in within(node)])
        for node in nodes:
            for inner in within(node):
                self._look(inner)
        return Effects(tuple(dict.fromkeys(self._found)), self._returns)

    def _read_quickly(self, nodes: list[ast.AST]) -> Effects:
        """First what needs no other function to be read: most statements that are no output show it there."""
        if not self.is_spoiled_by(nodes, following=False):
            self._found.clear()
            self.is_spoiled_by(nodes)
        return Effects(tuple(dict.fromkeys(self._found)), self._returns)

    def is_spoiled_by(self, nodes: Iterable[ast.AST], *, following: bool = True) -> bool:
        """True where one of the nodes does something that is no output; `following` what it calls, or not."""
        for node in nodes:
            if node.__class__ not in _SPEAKING or (not following and self._leads_away(node)):
                continue
            before = len(self._found)
            self._look(node)
            if any(_spoils(e) for e in self._found[before:]):
                return True
        return False

    @property
    def puts_out(self) -> bool:
        """True where something that was looked at puts something out."""
        return any(e.kind in OUTPUT for e in self._found)

    def _leads_away(self, node: ast.AST) -> bool:
        """True for what may run a function of the project."""
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name) and node.value.id == "self" and isinstance(node.ctx, ast.Load)
        if not isinstance(node, ast.Call):
            return False
        root = dotted(node.func).partition(".")[0]
        return not isinstance(node.func, ast.Attribute) or root in ("self", "cls", "") or root in self._module.imports

    def _add(self, kind: Kind, text: str, node: ast.AST) -> None:
        if self._quick and kind not in OUTPUT and kind is not Kind.QUIET:
            self._found.append(_SPOILT)  # nobody reads on: what it is, and for whom, is not asked
            return
        guarded = ranks_at(self._module, node, project=self._project).some
        line = getattr(node, "lineno", 0)
        own = kind in OUTPUT and names_rank(self._module.text_of(node))
        name = self._module.text_of(node.func) if isinstance(node, ast.Call) else ""
        self._found.append(Effect(kind, " ".join(text.split())[:80], self._module.path, line, guarded, own, name))

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Attribute):
            self._attribute(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            self._change(node.value, node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self._add(Kind.STATE, ", ".join(node.names), node)
        elif isinstance(node, (ast.Raise, ast.Assert)):
            self._add(Kind.RAISES, self._module.text_of(node), node)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._returns |= not (isinstance(node.value, ast.Constant) and node.value.value is None)
        elif isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            self._add(Kind.UNKNOWN, self._module.text_of(node), node)
        elif isinstance(node, (ast.For, ast.comprehension)) and "loader" in self._module.text_of(node.iter).lower():
            self._add(Kind.RANDOM, f"going through {self._module.text_of(node.iter)}", node.iter)

    def _change(self, target: ast.expr, node: ast.AST) -> None:
        if nature(self._module, target) is Nature.SHARED:
            kind = Kind.QUIET if is_of_an_experiment(self._module, target) else Kind.STATE
            self._add(kind, root_name(target), node)

    def _attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            if nature(self._module, node.value) is Nature.SHARED:
                self._add(Kind.STATE, dotted(node) or root_name(node), node)
        elif read := collective_read(self._module, node):
            self._add(Kind.METRICS if node.attr in _METRIC_DICTS else Kind.COLLECTIVE, read, node)
        elif isinstance(node.value, ast.Name) and node.value.id == "self" and not self._is_called(node):
            self._property(node)

    def _is_called(self, node: ast.Attribute) -> bool:
        up = self._module.parent(node)
        return isinstance(up, ast.Call) and up.func is node

    def _property(self, node: ast.Attribute) -> None:
        facts = self._facts(node)
        found = facts.method(node.attr) if facts else None
        if found and any(last(dotted(d)) in ("property", "cached_property") for d in found[1].decorator_list):
            self._take(read_function(self._project, found[0].module, found[1], self._chain, quick=self._quick), node)

    def _take(self, effects: Effects, node: ast.AST) -> None:
        if not effects.items:
            return
        guarded = ranks_at(self._module, node, project=self._project).some
        self._found += [replace(e, guarded=e.guarded or guarded) for e in effects.items]

    def _facts(self, node: ast.AST) -> ClassFacts | None:
        place = self._module.method_of(node)
        return class_facts(self._project, self._module, place[0]) if place else None

    # Calls

    def _call(self, call: ast.Call) -> None:
        if name := collective_call(self._module, call):
            self._add(Kind.COLLECTIVE, name, call)
        elif isinstance(call.func, ast.Name):
            self._named(call, call.func)
        elif isinstance(call.func, ast.Attribute):
            self._method(call, call.func)
        else:
            self._add(Kind.UNKNOWN, self._text(call), call)

    def _text(self, call: ast.Call) -> str:
        return f"{self._module.text_of(call.func)}(…)"

    def _named(self, call: ast.Call, func: ast.Name) -> None:
        name = qualified(self._module, func)
        if name == func.id and func.id not in self._module.imports:
            if found := find_function(self._project, self._module, func, call):
                self._take(self._done_by(call, *found), call)
            elif name == "print":
                self._print(call, func)
            elif name == "open":
                self._open(call, mode_of(call, 1))
            elif name == "next":
                self._add(Kind.RANDOM, self._text(call), call)
            elif name == "setattr":
                self._add(Kind.STATE, self._module.text_of(call.args[0]) if call.args else "an attribute", call)
            elif name not in host_only.BUILTINS:
                forward = func.id in MODEL_NAMES
                self._add(Kind.FORWARD if forward else Kind.UNKNOWN, self._text(call), call)
        else:
            self._imported(call, name)

    def _done_by(self, call: ast.Call, home: SourceModule, function: FunctionNode) -> Effects:
        """What a function of the project does, for what this call hands it."""
        done = read_function(self._project, home, function, self._chain, quick=self._quick)
        if not any(e.kind in OUTPUT for e in done.items):
            return done
        left_out = lines_without(self._module, call, function)
        return replace(done, items=tuple(e for e in done.items if e.path != home.path or e.line not in left_out))

    def _print(self, call: ast.Call, func: ast.Name) -> None:
        if not is_print_of_python(self._module, func):
            self._add(Kind.QUIET, self._text(call), call)  # who prints is seen to where the name is bound
            return
        self._add(Kind.PRINT if goes_to_terminal(call) else Kind.FILE, self._text(call), call)

    def _open(self, call: ast.Call, mode: str) -> None:
        if set(mode) & set("wax+"):
            self._add(Kind.FILE, self._module.text_of(call), call)
        elif mode == "?":
            self._add(Kind.UNKNOWN, self._module.text_of(call), call)

    def _imported(self, call: ast.Call, name: str) -> None:
        """A call of something an import brought in, by its qualified name."""
        kind = self._kind_of_import(call, name)
        if name in host_only.RUNS_THE_MODEL and not (call.args and last(dotted(call.args[0])) == "module"):
            self._add(Kind.FORWARD, self._text(call), call)
        if kind is not None:
            self._add(kind, self._text(call), call)
        elif name in host_only.CHANGES_ARGUMENT:
            for argument in (*call.args, *(k.value for k in call.keywords)):
                self._change(argument, call)
        elif not self._is_quiet(name):
            if found := find_function(self._project, self._module, call.func, call):
                self._take(self._done_by(call, *found), call)
            else:
                self._add(Kind.UNKNOWN, self._text(call), call)

    def _kind_of_import(self, call: ast.Call, name: str) -> Kind | None:
        end, root = last(name), family(name)
        if name in host_only.TRACKER_FUNCTIONS:
            return Kind.TRACKER
        if name in host_only.RANDOM or name.startswith(host_only.RANDOM_PREFIXES):
            return Kind.RANDOM
        if renames_to_itself(self._module, call):
            return Kind.QUIET
        if name in host_only.WRITERS and name not in host_only.ON_A_HANDLE:
            stream_missing = end in ("dump", "safe_dump", "dump_all") and root == "yaml" and len(call.args) < 2
            return None if stream_missing and not any(k.arg == "stream" for k in call.keywords) else Kind.FILE
        if end.startswith("rank_zero_") and end != "rank_zero_only":
            return Kind.QUIET
        if root == "logging" and end in host_only.LEVELS:
            return Kind.LOG
        if root == "logging" and end in host_only.SETS_UP_LOGGING:
            return Kind.STATE  # without it the lines of this rank go nowhere
        if name in ("rich.print", "pprint.pprint", "pprint.pp", "traceback.print_exc", "traceback.print_stack"):
            return Kind.PRINT
        if name in ("sys.stdout.flush", "sys.stderr.flush"):
            return Kind.QUIET  # each process has its own buffer
        if name.startswith(("sys.stdout.", "sys.stderr.")):
            return Kind.PRINT
        return None

    def _is_quiet(self, name: str) -> bool:
        """True for a call that computes and no more."""
        if name in host_only.LOOKS or family(name) in host_only.PACKAGES or name.startswith(host_only.PREFIXES):
            return True
        if name.startswith("logging."):
            return True
        known = name.startswith("torch.") and not name.startswith(("torch.distributed", "torch.cuda", "torch.save", "torch.load"))
        return known and not name.endswith("_") and last(name)[:1].islower()

    def _method(self, call: ast.Call, func: ast.Attribute) -> None:
        name, method = qualified(self._module, func), func.attr
        root = dotted(func).partition(".")[0]
        if root in self._module.imports and root not in ("self", "cls"):
            if nature(self._module, func.value) is Nature.HOST or "." in name:
                if self._is_logger(func.value) and method in host_only.LEVELS:
                    self._add(Kind.LOG, self._text(call), call)
                else:
                    self._imported_method(call, func, name)
                return
        if dotted(func.value) in ("self", "cls"):
            self._own(call, func)
        elif isinstance(func.value, ast.Call) and dotted(func.value.func) == "super":
            self._super(call, func)
        else:
            self._on_value(call, func)

    def _imported_method(self, call: ast.Call, func: ast.Attribute, name: str) -> None:
        writes = func.attr in host_only.WRITING_METHODS or (func.attr == "save" and family(name) in host_only.PACKAGES)
        if writes and not name.startswith("sys."):
            self._add(Kind.FILE, self._text(call), call)
        else:
            self._imported(call, name)

    def _own(self, call: ast.Call, func: ast.Attribute) -> None:
        """`self.name(...)`: a method of the class, with every override of it in the project, or an attribute that is called."""
        facts = self._facts(call)
        found = facts.method(func.attr) if facts else None
        if facts is not None and found is not None:
            before = len(self._found)
            self._take(read_function(self._project, found[0].module, found[1], self._chain, quick=self._quick), call)
            if self._quick and any(_spoils(e) for e in self._found[before:]):
                return
            below = overriding(self._project, facts.lineage[0], func.attr)
            if below is None:
                self._add(Kind.UNKNOWN, f"{self._text(call)}, which many classes define anew", call)
            for site in below or ():
                own = site.methods()[func.attr]
                self._take(read_function(self._project, site.module, own, self._chain, quick=self._quick), call)
        elif func.attr in ("log", "log_dict"):
            self._add(Kind.LOGGED, self._text(call), call)
        elif func.attr == "print":
            self._add(Kind.QUIET, self._text(call), call)
        elif func.attr == "forward" or func.attr.lstrip("_") in MODEL_NAMES:
            self._add(Kind.FORWARD, self._text(call), call)
        elif func.attr in _MODEL_CHANGES:
            self._add(Kind.STATE, self._text(call), call)
        elif func.attr not in host_only.PURE_METHODS:
            self._add(Kind.UNKNOWN, self._text(call), call)

    def _super(self, call: ast.Call, func: ast.Attribute) -> None:
        facts = self._facts(call)
        for site in facts.lineage[1:] if facts else ():
            if (function := site.methods().get(func.attr)) is not None:
                self._take(read_function(self._project, site.module, function, self._chain, quick=self._quick), call)
                return
        if facts is None or facts.unresolved or not all(last(n) in _NO_OP_BASES for n in facts.external):
            self._add(Kind.UNKNOWN, self._text(call), call)

    def _on_value(self, call: ast.Call, func: ast.Attribute) -> None:
        """A method of a value: known by its name, by what the value is, or not at all."""
        method, receiver = func.attr, func.value
        if self._of_the_project(call, func):
            return
        written = self._module.text_of(func)
        kind = nature(self._module, receiver)
        if kind is Nature.HOST and method in host_only.SETS_UP_LOGGER:
            self._add(Kind.STATE, self._text(call), call)
        elif ".experiment." in written or is_experiment(self._module, receiver) or method in host_only.LOGGER_METHODS:
            self._add(Kind.QUIET, self._text(call), call)
        elif method in host_only.LEVELS and "log" in root_of(receiver).lower():
            self._add(Kind.LOG if self._is_logger(receiver) else Kind.QUIET, self._text(call), call)
        elif method in host_only.TRACKER_METHODS:
            self._add(Kind.TRACKER, self._text(call), call)
        elif method == "print":
            self._add(Kind.PRINT if kind is Nature.HOST else Kind.QUIET, self._text(call), call)
        elif method in ("compute", "sync") and kind is not Nature.HOST:
            self._add(Kind.COLLECTIVE, f"{written}()", call)
        elif method == "open":
            self._open(call, mode_of(call, 1 if takes_path(call) else 0))
        elif method in host_only.WRITING_METHODS or (
            method in ("save", "rename") and (kind is Nature.HOST or is_script_module(self._module, receiver))
        ):
            in_memory = method in ("write", "flush") and is_buffer(self._module, receiver)
            in_memory = in_memory or (method == "write" and bool(call.keywords) and not call.args)  # no file takes it so
            if method == "flush" and kind is not Nature.HOST and not _HANDLES.search(root_of(receiver)):
                self._add(Kind.UNKNOWN, self._text(call), call)
                return
            if not in_memory:
                self._add(Kind.FILE, self._text(call), call)
        elif (
            (method == "replace" and len(call.args) == 1 and not call.keywords)
            or writes_a_picture(self._module, call)
            or ((call.args or call.keywords) and dumps_config(self._module, func))
        ):
            self._add(Kind.FILE, self._text(call), call)
        elif method in _MODEL_CHANGES and last(dotted(receiver)).lstrip("_") in MODEL_NAMES:
            self._add(Kind.STATE, self._text(call), call)
        elif method in host_only.MUTATORS:
            if kind is Nature.SHARED:
                self._add(Kind.STATE, root_name(receiver), call)
        elif kind is not Nature.HOST and method not in host_only.PURE_METHODS:
            model = last(dotted(receiver)).lstrip("_") in MODEL_NAMES and method in (*MODEL_NAMES, "forward", "generate")
            self._add(Kind.FORWARD if model else Kind.UNKNOWN, self._text(call), call)

    def _of_the_project(self, call: ast.Call, func: ast.Attribute) -> bool:
        """True where the object is made from a class of the project with the method: what it does counts, not its name."""
        known = False
        for made in classes_of(self._project, self._module, func):
            found = class_facts(self._project, made.module, made.node).method(func.attr)
            if found is not None:
                known = True
                done = read_function(self._project, found[0].module, found[1], self._chain, quick=self._quick)
                self._take(self._without_the_quiet(done, func, found[0].module, found[1]), call)
        return known

    def _without_the_quiet(self, done: Effects, func: ast.Attribute, home: SourceModule, method: FunctionNode) -> Effects:
        """What the method does, guarded where the object was told at its making that it is not rank 0's."""
        if not any(e.kind in OUTPUT and not e.guarded for e in done.items):
            return done
        lines = lines_of_one_rank(self._project, self._module, func.value, method)
        here = ((e, e.path == home.path and e.line in lines) for e in done.items)
        return replace(done, items=tuple(replace(e, guarded=True) if quiet else e for e, quiet in here))

    def _is_logger(self, receiver: ast.expr) -> bool:
        return is_logger(self._module, receiver, lambda: self._facts(receiver))
