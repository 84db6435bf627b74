"""Places that put the number of a Slurm task over the rank of a launcher: `os.environ["RANK"] = os.environ["SLURM_PROCID"]`.

A job under `srun python` needs them. A torchrun that runs as one task of a job loses by them what it has told its processes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.job_files.torch_commands import torch_commands
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import end_of
from codemods.analysis.ranks.counted_among import environment
from codemods.analysis.ranks.launcher_order import OF_TASKS, Order, asked_for_task, is_settled
from codemods.analysis.ranks.launcher_variables import is_sure_to_come, variables_set
from codemods.api.findings import Edit, ReplaceExpression
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.files.text_file import DOCUMENT_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SAID = lazy(rb"(?:\btorchrun|torch\.distributed\.(?:launch|run))[ \t](?:[^\n`]*?[ \t])?([\w./-]+\.py)\b")
_RANKS = ("RANK", "LOCAL_RANK")


def tasks_over_ranks(project: Project, module: SourceModule) -> Iterator[Order]:
    """Those of a file of a program that a command of the repository starts by torchrun."""
    found = [(s, v) for s in variables_set(module) if s.variable in _RANKS and (v := _task(module, s.value))]
    if not found or not any(module.path in whole_program(project, script) for script in _launched(project)):
        return
    told: set[ast.If] = set()
    for one, task in found:
        holder = one.target.value if one.target is not None else None
        for test, asked in _tests_over(module, one.statement) if holder is not None else ():
            if holder is None or test in told:
                continue
            told.add(test)
            edit = _asks_launcher(module, test, module.text_of(holder), one.variable)
            yield Order(test.test, task, (edit,), "" if asked == task else asked)


def _launched(project: Project) -> frozenset[str]:
    """The scripts that a command starts by torchrun, or of which a sentence of the instructions says so: `$ torchrun main.py`."""

    def build() -> frozenset[str]:
        texts = {p for w in (b"torchrun", b"torch.distributed") for p in project.files_containing(w, kinds=DOCUMENT_KINDS)}
        named = {m[1].decode() for p in texts for m in _SAID.finditer(project.read(p) or b"")}
        said = {p for p in project.python_files if p in named}
        return frozenset(said | {c.script for c in torch_commands(project)})

    return project.keep("scripts that torchrun starts", build)


def _task(module: SourceModule, value: ast.expr) -> str:
    """The variable of Slurm in `os.environ["SLURM_PROCID"]` and `str(int(os.environ["SLURM_LOCALID"]))`; "" for anything else."""
    while isinstance(value, ast.Call) and end_of(value.func) in ("str", "int") and len(value.args) == 1:
        value = value.args[0]
    variable = environment(module, value)
    return variable if variable in OF_TASKS else ""


def _tests_over(module: SourceModule, statement: ast.stmt) -> Iterator[tuple[ast.If, str]]:
    """The tests for a Slurm job under which alone it is run, with the variable asked for; none where another one decides."""
    function = module.function_of(statement)
    tests = [up for up in module.ancestors(statement) if isinstance(up, (ast.If, ast.Try)) and module.function_of(up) is function]
    if len(tests) == 1:
        test = tests[0]
        if isinstance(test, ast.If) and statement in test.body and (asked := _asked(module, test)):
            yield test, asked
    elif not tests and function is not None and is_sure_to_come(module, statement):
        yield from _tests_of_calls(module, function)


def _tests_of_calls(module: SourceModule, function: FunctionNode) -> Iterator[tuple[ast.If, str]]:
    """Those over each call of a function of the file, where no other mention of it is."""
    reads = module.reads_of(function.name)
    calls = [c for c in module.calls_named(function.name) if isinstance(c.func, ast.Name)]
    if module.class_of(function) is not None or len(reads) != len(calls):
        return
    for call in calls:
        test = module.parent(module.statement_of(call))
        if isinstance(test, ast.If) and module.statement_of(call) in test.body and (asked := _asked(module, test)):
            yield test, asked


def _asked(module: SourceModule, test: ast.If) -> str:
    """The variable of Slurm that is set where the test holds, by itself or by a function of the file that says no more."""
    if test.orelse or is_settled(module, test) or _has_left(module, test):
        return ""
    question = test.test
    if isinstance(question, ast.Call) and isinstance(question.func, ast.Name) and not question.args and not question.keywords:
        named = [f for f in module.functions if f.name == end_of(question.func)]
        last = named[0].body[-1] if len(named) == 1 and len(named[0].body) <= 2 else None  # a docstring may stand above
        if not isinstance(last, ast.Return) or last.value is None:
            return ""
        question = last.value
    asked = asked_for_task(question)
    return asked[2] if asked is not None and asked[1] else ""


def _has_left(module: SourceModule, test: ast.If) -> bool:
    """True where a test above it in the same block asks for the launcher: what it has set may have ended the function."""
    above = (n for n in module.nodes(ast.If) if n.lineno < test.lineno and module.function_of(n) is module.function_of(test))
    return any(n.value in (*_RANKS, "WORLD_SIZE") for a in above for n in walk(a.test) if isinstance(n, ast.Constant))


def _asks_launcher(module: SourceModule, test: ast.If, holder: str, variable: str) -> Edit:
    written = module.text_of(test.test)
    quote = "'" if "'" in written else '"'
    whole = f"({written})" if isinstance(test.test, (ast.IfExp, ast.NamedExpr, ast.Lambda)) else written
    return ReplaceExpression(module.path, module.span(test.test), f"{whole} and {quote}{variable}{quote} not in {holder}")
