"""Modes of a program that a check of its settings keeps from several processes: `if args.distributed and args.plot: raise`.

What stands under `if args.plot:` is run by one process then, wherever it stands. The check counts only where it belongs to the
program: the option is asked for in one place of the project, and the check is made there, on every way. So is what stands under
`if args.gpus <= 1:`, where the processes are started by that number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.conditions import is_main_block
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.counted_processes import asks_for_one
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.ranks.uses import MANY_FILES, uses_of
from codemods.data.rank_names import EXIT_CALLS
from codemods.files.source import FunctionNode, SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

Mode = tuple[str, object]  # a setting, and the value that it has to have; True for any that counts as true
_Part = tuple[ast.expr, bool]  # a test, and what it has to come out as

_EARLY = lazy(r"initialized|available")  # whether there is a group yet, or a GPU: no setting
_PLAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def is_in_mode_of_one(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test of a setting with which the program refuses to start several processes."""
    return any(
        asks_for_one(project, module, part, wanted) or any(_is_of_one(project, mode) for mode in _asked(part, wanted))
        for part, wanted in _parts_round(module, node)
    )


def _parts_round(module: SourceModule, node: ast.AST) -> Iterator[_Part]:
    """What the tests round the node in its function come out as where it is reached."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(up, ast.If) and below is not up.test:
            yield from _parts(up.test, any(s is below for s in up.body))
        below = up


def _is_of_one(project: Project, mode: Mode) -> bool:
    return project.keep(("mode that several processes exclude", mode), lambda: _is_excluded(project, mode))


def _is_excluded(project: Project, mode: Mode) -> bool:
    users = [p for p in project.files_using(mode[0], most=MANY_FILES) or () if not is_test_file(p)]
    homes = [(p, call) for p in users for call in _options(project, p, mode[0])]
    if len(homes) != 1 or any(_is_set(project, path, mode[0]) for path in users):
        return False
    home = homes[0][0]
    if any(path != home and b"__main__" in (project.read(path) or b"") for path in users):
        return False  # another program, whose settings may hold it without an option
    for path in users:
        module = project.module(path)
        for statement, modes in _checks(module).items() if module is not None else ():
            known = mode in modes or (mode[0], True) in modes
            if module is not None and known and _is_made_in(project, module, statement, home):
                return True
    return False


def _options(project: Project, path: str, name: str) -> Iterator[ast.Call]:
    """Where a file asks for the setting on the command line."""
    module = project.module(path)
    for call in module.calls_named("add_argument") if module is not None else ():
        texts = (a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
        if any(t.lstrip("-").replace("-", "_") == name for t in texts):
            yield call


def _is_set(project: Project, path: str, name: str) -> bool:
    """True where the file gives the setting a value of its own: what was checked may not be what is asked below."""
    module = project.module(path)
    nodes: list[ast.Attribute | ast.Subscript] = [*module.nodes(ast.Attribute)] if module is not None else []
    for node in (*nodes, *(module.nodes(ast.Subscript) if module is not None else ())):
        if _setting(node) != name or not isinstance(node.ctx, ast.Store) or module is None:
            continue
        value = getattr(module.parent(node), "value", None)
        if last(dotted(value)) != name if isinstance(value, ast.expr) else True:
            return True
    return False


@once_a_module
def _checks(module: SourceModule) -> dict[ast.stmt, frozenset[Mode]]:
    """Statements that end a run of several processes, and the modes in which they do."""
    found: dict[ast.stmt, frozenset[Mode]] = {}
    asserted: list[ast.Assert | ast.If] = [*module.nodes(ast.Assert)]
    for statement in (*asserted, *(s for s in module.nodes(ast.If) if _ends(s))):
        parts = list(_parts(statement.test, isinstance(statement, ast.If)))
        parts += _round(module, statement)
        rest = [part for part in parts if not _is_of_several(module, part)]
        if len(rest) == 1 and len(parts) > 1 and (modes := frozenset(_any_of(*rest[0]))):
            found[statement] = modes
    return found


def _ends(statement: ast.If) -> bool:
    """`raise`, an exit, or `parser.error(…)`, which prints its usage and exits."""
    end = statement.body[-1]
    if isinstance(end, ast.Raise):
        return True
    called = end.value.func if isinstance(end, ast.Expr) and isinstance(end.value, ast.Call) else None
    if called is None or not leaves([end]):
        return isinstance(called, ast.Attribute) and called.attr == "error" and "parser" in dotted(called.value).lower()
    return dotted(called) in EXIT_CALLS


def _round(module: SourceModule, statement: ast.stmt) -> list[_Part]:
    """What the tests round a statement come out as, up to its function."""
    out: list[_Part] = []
    below: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, _PLAIN):
            break
        if isinstance(up, ast.If) and not is_main_block(up):
            out += _parts(up.test, any(s is below for s in up.body))
        elif not isinstance(up, (ast.If, ast.With)):
            out.append((ast.Constant(value=None), True))  # a loop, a `try`: it may not be made at all
        below = up
    return out


def _parts(test: ast.expr, wanted: bool) -> Iterator[_Part]:
    """The tests that must all come out so for the whole to come out as wanted."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand, not wanted)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if wanted else ast.Or):
        for value in test.values:
            yield from _parts(value, wanted)
    else:
        yield test, wanted


def _is_of_several(module: SourceModule, part: _Part) -> bool:
    return several_processes(module, part[0]) is part[1] and _EARLY.search(ast.unparse(part[0])) is None


def _any_of(test: ast.expr, wanted: bool) -> Iterator[Mode]:
    """The modes each of which makes the test come out as wanted, whatever the others are."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _any_of(test.operand, not wanted)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or if wanted else ast.And):
        for value in test.values:
            yield from _any_of(value, wanted)
    elif (counted := _counted(test, wanted)) is not None:
        yield from ((name, True) for name in counted)
    else:
        yield from _asked(test, wanted)


def _asked(test: ast.expr, wanted: bool) -> Iterator[Mode]:
    """`args.plot`, and `args.mode == "plot"`."""
    if wanted and (name := _setting(test)):
        yield name, True
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(value := test.comparators[0], ast.Constant):
        equal = isinstance(test.ops[0], ast.Eq) if wanted else isinstance(test.ops[0], ast.NotEq)
        if equal and isinstance(value.value, str) and value.value and (name := _setting(test.left)):
            yield name, value.value


def _counted(test: ast.expr, wanted: bool) -> list[str] | None:
    """The settings of `args.plot + args.video == 0`, where one of them has to be on; none for any other test."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.BinOp):
        return None
    op, value = test.ops[0], test.comparators[0]
    if not isinstance(value, ast.Constant) or value.value != 0 or not isinstance(op, (ast.NotEq, ast.Gt) if wanted else ast.Eq):
        return None
    names: list[str] = []
    left: ast.expr = test.left
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
        names.append(_setting(left.right))
        left = left.left
    names.append(_setting(left))
    return names if all(names) else None


def _setting(node: ast.expr) -> str:
    """The name of `args.plot`, `self.cfg.plot` and `options["plot"]`; "" for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr if dotted(node) else ""
    text = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else ""
    return text if isinstance(text, str) else ""


def _is_made_in(project: Project, module: SourceModule, statement: ast.stmt, home: str) -> bool:
    """True where the program that asks for the option comes to the check on every way."""
    function = module.function_of(statement)
    if function is None or (module.path == home and _asks(module, function)):
        return module.path == home
    used = uses_of(project, module, function).outside_tests()
    return not used.more and any(s.module.path == home and _is_on_every_way(s.module, s.call) for s in used.calls)


def _asks(module: SourceModule, function: FunctionNode) -> bool:
    return any(module.function_of(c) is function for c in module.calls_named("parse_args", "add_argument"))


def _is_on_every_way(module: SourceModule, call: ast.Call) -> bool:
    for up in module.ancestors(call):
        if isinstance(up, _PLAIN):
            return True
        if not isinstance(up, (ast.expr, ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.With)) and not is_main_block(up):
            return False
    return True
