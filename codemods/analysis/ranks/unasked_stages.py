"""Stages of Lightning that nothing of the repository asks a Trainer for, and what `setup` does for them alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.logged.own_programs import nobody_fits
from codemods.analysis.ranks.run_by_programs import has_programs
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# Another name may stand for a Trainer in `runner.test(loader)`; of predictions, models and estimators of all kinds have a method.
_ASKING = {
    "test": lazy(rb"\.test\(|getattr\(\s*(?:self\.)?trainer|LightningCLI|\btrainer_fn\b"),
    "validate": lazy(rb"\.validate\(|getattr\(\s*(?:self\.)?trainer|LightningCLI|\btrainer_fn\b"),
    "predict": lazy(rb"(?i)trainer\w*(?:\(\))?\.predict\(|getattr\(\s*(?:self\.)?trainer|LightningCLI|\btrainer_fn\b"),
}
_COMMENT = lazy(rb"(?m)^[ \t]*#.*$")
_SPEAKING = (".ipynb", ".md", ".rst", ".sh")
_WHOLE = "None"  # of who sets up by hand: for all stages


def nobody_asks(project: Project, stage: str) -> bool:
    """True where programs of the project call `fit`, and neither they nor its notebooks and texts ask a Trainer for the stage.

    A call that is commented out asks for nothing.
    """

    def ask() -> bool:
        if not has_programs(project) or nobody_fits(project) or not project.files_containing(b".fit("):
            return False
        paths = (p for kinds in ((".py",), _SPEAKING) for p in project.files_containing(b"rainer", kinds=kinds))
        return not any(_ASKING[stage].search(_COMMENT.sub(b"", project.read_text(p) or b"")) for p in paths)

    return project.keep(("nobody asks for", stage), ask)


def is_of_an_unasked_stage(project: Project, module: SourceModule, function: FunctionNode, line: int) -> bool:
    """True for a line of `setup(self, stage)` under a test of a stage (`if stage == "validate"`) that nothing asks for."""
    names = [a.arg for a in function.args.args[1:2]]
    if function.name not in ("setup", "teardown") or not names:
        return False
    for test in (n for n in walk(function) if isinstance(n, ast.If)):
        first, end = test.body[0], test.body[-1]
        if first.lineno <= line <= (end.end_lineno or line):
            stages = list(_stages(test.test, names[0]))
            if stages and all(_is_unasked(project, stage) for stage in stages):
                return True
    return False


def _is_unasked(project: Project, stage: str) -> bool:
    if stage in _ASKING:
        return nobody_asks(project, stage) and not _is_set_up_by_hand(project)
    return stage == _WHOLE and not _is_set_up_by_hand(project)  # Lightning gives a stage each time


def _is_set_up_by_hand(project: Project) -> bool:
    """True where a program calls `setup` for all stages, for one that is not seen, or for another one than that of `fit`."""

    def ask() -> bool:
        if project.files_containing(b".setup(", kinds=(".ipynb",)):
            return True
        read = (project.module(p) for p in project.files_containing(b".setup(") if not is_test_file(p))
        return any(not _is_of_fit(module, call) for module in read if module is not None for call in module.calls_named("setup"))

    return project.keep("set up by hand", ask)


def _is_of_fit(module: SourceModule, call: ast.Call) -> bool:
    """True for `data.setup("fit")`, and in a `setup` that hands on the stage that it got."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if len(given) != 1:
        return False
    if isinstance(given[0], ast.Constant):
        return given[0].value == "fit"
    function = module.function_of(call)
    names = [a.arg for a in function.args.args[1:2]] if function is not None and function.name == "setup" else []
    return isinstance(given[0], ast.Name) and given[0].id in names


def _stages(test: ast.expr, name: str) -> Iterator[str]:
    """The stages in which a test holds; "" for anything else that it asks."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        for part in test.values:
            yield from _stages(part, name)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield _WHOLE if isinstance(test.operand, ast.Name) and test.operand.id == name else ""
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name) and test.left.id == name:
        yield from _compared(test.ops[0], test.comparators[0])
    else:
        yield ""


def _compared(how: ast.cmpop, value: ast.expr) -> Iterator[str]:
    if isinstance(how, (ast.Eq, ast.Is)) and isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(how, ast.In) and isinstance(value, (ast.Tuple, ast.List, ast.Set)) and value.elts:
        yield from (str(e.value) if isinstance(e, ast.Constant) else "" for e in value.elts)
    else:
        yield ""
