"""Calls by which rank 0 alone shows something: under a test of the rank, by an object that only it has, or a quiet logger."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.print_of_zero import prints_on_zero_alone
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.variance.number_words import is_mean, is_number, named_by_texts, numbers_gone_through, texts_of
from codemods.analysis.variance.paths import parameters
from codemods.analysis.variance.put_into import dict_of_row
from codemods.data.rank_variance import DRAWS, LOGGER_NAME, SAYS_SHOWN, SHOWN_BY_MAIN, SHOWN_NUMBERS, TAKES_WHAT_IS_SHOWN
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_LEVELS = frozenset({"info", "debug", "success"})  # what a level keeps back; errors come from every rank
_SET_UP = ("setLevel", "basicConfig", "addHandler")
_FOREIGN = ("transformers", "datasets", "diffusers", "warnings", "matplotlib", "PIL")  # others keep these quiet on purpose
_RANK = re.compile(r"(^|_)(rank|is_main|is_master|main_process|is_main_process|is_master_process|is_rank_0|is_rank_zero)$", re.I)
_HIGH = frozenset({"ERROR", "WARNING", "WARN", "CRITICAL"})
_UPWARD = 2  # callers of callers that are asked who made an object


def shows(project: Project, module: SourceModule, node: ast.Call) -> bool:
    """True for output of numbers that rank 0 alone makes: told before anything is interpreted."""
    name = dotted(node.func)
    if name in SHOWN_BY_MAIN:
        return True
    if not says_shown(node) or not _may_hold_number(module, node) or _is_own_log(project, module, node):
        return False  # cheaper than to ask who calls the function
    if is_on_zero(project, module, node) or _shows_on_zero(project, module, node) or prints_on_zero_alone(project, module, node):
        return True
    if not isinstance(node.func, ast.Attribute):
        return False
    return _keeps_quiet(project, module, node.func) or _is_of_zero(project, module, node.func.value, _UPWARD)


def says_shown(node: ast.Call) -> bool:
    """True where the name of the call says that it shows something."""
    name = dotted(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    if name.startswith("math."):
        return False
    return last(name) in SHOWN_NUMBERS or SAYS_SHOWN.search(last(name)) is not None


def _may_hold_number(module: SourceModule, node: ast.Call) -> bool:
    """True where an argument reads like a metric, or is a name: of a text or of a dict that is put together above."""
    given = [*node.args, *(k.value for k in node.keywords)]
    if last(dotted(node.func)) in DRAWS or any(isinstance(dict_of_row(g), (ast.Name, ast.Dict)) for g in given):
        return True
    inner = [n for g in given for n in walk(g) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    if any(map(is_number, inner)) or named_by_texts(node) or any(is_mean(n) for g in given for n in walk(g)):
        return True
    return any(numbers_gone_through(module, n) or (isinstance(n, ast.Name) and texts_of(module, n)) for n in inner)


def is_on_zero(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where rank 0 alone comes, callers included."""
    here = ranks_at(module, node, project=project)
    function = module.function_of(node)
    if here is Ranks.ALL and function is not None:
        here = ranks_entering(project, module, function)
    return here in _ZERO


def _is_own_log(project: Project, module: SourceModule, node: ast.Call) -> bool:
    """True for `self.log` of a LightningModule, which DDP101 judges."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("log", "log_dict"):
        return False
    owner = module.class_of(node)
    return owner is not None and class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE)


def _shows_on_zero(project: Project, module: SourceModule, node: ast.Call) -> bool:
    """True for a helper of the project that prints, on rank 0 alone, what it is handed."""
    if last(dotted(node.func)) in ("print", "format") or not node.args:
        return False
    site = called_function(project, module, node)
    return site is not None and prints_on_zero(project, site)


def may_be_own_writer(project: Project, module: SourceModule, node: ast.Call) -> bool:
    """`board.add_scalar(...)` where a class of the project has that method: which object it is, the analysis of values says."""
    if not says_shown(node) or not isinstance(node.func, ast.Attribute) or not _may_hold_number(module, node):
        return False
    return bool(project.files_defining(node.func.attr)) and not _is_own_log(project, module, node)


def prints_on_zero(project: Project, site: FunctionSite) -> bool:
    """True for a function that shows, on rank 0 alone, what it is handed."""
    key = ("shows on zero", site.module.path, site.node.lineno, site.node.name)
    return project.keep(key, lambda: _prints_on_zero(project, site.module, site.node))


def _prints_on_zero(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    given = set(parameters(function)) - {"self", "cls"}
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        handed = {n.id for a in (*call.args, *(k.value for k in call.keywords)) for n in walk(a) if isinstance(n, ast.Name)}
        if not handed & given or not says_shown(call):
            continue
        if dotted(call.func) in SHOWN_BY_MAIN or ranks_at(module, call, project=project) in _ZERO:
            return True
    return False


# Loggers that are quiet on the other ranks


def _keeps_quiet(project: Project, module: SourceModule, func: ast.Attribute) -> bool:
    """`logger.info` where the project raises the level, or leaves out the handlers, of the other ranks' loggers."""
    if func.attr not in _LEVELS or not LOGGER_NAME.search(last(dotted(func.value))):
        return False
    if isinstance(func.value, ast.Name) and any(_of_accelerate(module, b) for b in bindings_of(module, func.value)):
        return True
    return project.keep(("quiet loggers",), lambda: _quiet_loggers(project))


def _of_accelerate(module: SourceModule, bound: Binding) -> bool:
    """`logger = get_logger(__name__)` of Accelerate: its lines come from the main process, unless they ask for all."""
    value = bound.value
    return isinstance(value, ast.Call) and qualified(module, value.func) == "accelerate.logging.get_logger"


def _quiet_loggers(project: Project) -> bool:
    paths = {p for word in _SET_UP for p in project.files_containing(f"{word}(".encode())}
    modules = (project.module(path) for path in sorted(paths))
    return any(_quiets(m, f) for m in modules if m is not None for f in m.functions)


def _quiets(module: SourceModule, function: FunctionNode) -> bool:
    """True for a function that sets up logging one way on rank 0 and another way on the others."""
    body = list(walk_scope(function))
    if not any(isinstance(n, ast.Call) and _sets_up(n) for n in body):
        return False
    for node in body:
        if isinstance(node, ast.IfExp) and _asks_for_rank(node.test):
            up = next((u for u in module.ancestors(node) if isinstance(u, ast.Call)), None)
            if up is not None and _sets_up(up):
                return True
        if isinstance(node, ast.If) and _asks_for_rank(node.test):
            inner = [n for s in (*node.body, *node.orelse) for n in (s, *walk(s))]
            if any(isinstance(n, ast.Return) or (isinstance(n, ast.Call) and _sets_up(n)) or _names_level(n) for n in inner):
                return True
    return False


def _sets_up(node: ast.Call) -> bool:
    """True for a call that sets a level or a handler of the project's own loggers."""
    name = dotted(node.func)
    return last(name) in _SET_UP and not any(word in name for word in _FOREIGN)


def _names_level(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _HIGH and dotted(node.value) == "logging"


def _asks_for_rank(test: ast.expr) -> bool:
    named = [last(dotted(n)) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))]
    return any(_RANK.search(name) for name in named)


# Objects that rank 0 alone has


def _is_of_zero(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True for `writer` where rank 0 makes one, and the others have None or nothing."""
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return _all_on_zero(project, module, attribute_bindings(module, node), depth)
        return False
    if not isinstance(node, ast.Name) or not TAKES_WHAT_IS_SHOWN.search(node.id):
        return False
    found = bindings_of(module, node)
    if any(b.value is not None for b in found):
        return _all_on_zero(project, module, found, depth)
    function = module.function_of(node)
    return function is not None and node.id in parameters(function) and _handed_by_zero(project, module, function, node.id, depth)


def may_be_of_zero(module: SourceModule, node: ast.Call) -> bool:
    """`if writer is not None: writer.add_scalar(...)`: whether only rank 0 has a writer is for the analysis of values to say."""
    if not says_shown(node) or not isinstance(node.func, ast.Attribute):
        return False
    path = dotted(node.func.value)
    tests = (up.test for up in module.ancestors(node) if isinstance(up, ast.If)) if TAKES_WHAT_IS_SHOWN.search(last(path)) else ()
    return any(_asks_for(test, path) for test in tests)


def _asks_for(test: ast.expr, path: str) -> bool:
    """True for `path` and `path is not None`, also where more is asked."""
    if isinstance(test, ast.BoolOp):
        return any(_asks_for(v, path) for v in test.values)
    if isinstance(test, ast.Compare):
        return dotted(test.left) == path and isinstance(test.ops[0], ast.IsNot)
    return dotted(test) == path


def _all_on_zero(project: Project, module: SourceModule, found: list[Binding], depth: int) -> bool:
    given = [b for b in found if b.value is not None and not is_none(b.value)]
    return bool(given) and all(_is_made_on_zero(project, module, b, depth) for b in given)


def _is_made_on_zero(project: Project, module: SourceModule, bound: Binding, depth: int) -> bool:
    value = bound.value
    assert value is not None
    if isinstance(value, ast.IfExp):
        split = known_split(module, value.test, project)
        if split is None:
            return False
        return (split.true in _ZERO and is_none(value.orelse)) or (split.false in _ZERO and is_none(value.body))
    if ranks_at(module, bound.node, project=project) in _ZERO:
        return True
    if isinstance(value, ast.Call):  # a bar that is switched off on the others
        off = next((k.value for k in value.keywords if k.arg == "disable"), None)
        split = known_split(module, off, project) if off is not None else None
        return split is not None and split.false in _ZERO
    return isinstance(value, (ast.Name, ast.Attribute)) and depth > 0 and _is_of_zero(project, module, value, depth - 1)


def _handed_by_zero(project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int) -> bool:
    """True where every caller hands over such an object."""
    if depth <= 0:
        return False
    calls = uses_of(project, module, function).outside_tests().calls
    found = [_written(c.call, function, name) for c in calls]
    known = [(c, f) for c, f in zip(calls, found, strict=True) if f is not None and not is_none(f)]
    return bool(known) and all(_is_of_zero(project, c.module, f, depth - 1) for c, f in known)


def _written(call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
    names = [p for p in parameters(function) if p not in ("self", "cls")]
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    if name in keywords:
        return keywords[name]
    index = names.index(name) if name in names else len(call.args)
    return call.args[index] if index < len(call.args) else None
