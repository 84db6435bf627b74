"""Places that ask for a number of Slurm before they ask for the same number of the launcher.

Slurm gives its numbers to each task. What the task starts inherits them: all processes of a torchrun in a job have those of the
task that torchrun is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.job_files.old_launcher import STARTS_IN
from codemods.analysis.names import end_of, last, qualified
from codemods.analysis.ranks.counted_among import environment
from codemods.api.findings import Edit, ReplaceExpression
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

OF_TASKS = frozenset({"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NPROCS"})
_OF_PROCESSES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
_NAMES = (b"torchrun", b"torch.distributed.launch", b"torch.distributed.run")
_LAUNCHER = lazy(rb"(?m)^(?![ \t]*(?:pip|conda)\b)[^\n]*?(?:\btorchrun[ \t]|torch\.distributed\.(?:launch|run)\b)")


@record
class Order:
    """node: where the order is decided. variable: what is taken from Slurm first. edits: the launcher is asked first.

    asked: the variable whose presence decides, where that is another one. under: that of the launcher which is set there.
    """

    node: ast.expr
    variable: str
    edits: tuple[Edit, ...]
    asked: str = ""
    under: str = ""


def orders(module: SourceModule) -> Iterator[Order]:
    """The places of a file."""
    yield from _lists(module)
    yield from _defaults(module)
    yield from _tests(module)


def started_by_launcher(project: Project, module: SourceModule) -> tuple[str, int] | None:
    """Where the file speaks of torchrun, or a text or a job file of the repository starts a program with it."""
    for word in _NAMES:
        if (at := module.data.find(word)) >= 0:
            return module.path, module.data.count(b"\n", 0, at) + 1

    def build() -> tuple[str, int] | None:
        for path in sorted({p for word in _NAMES for p in project.files_containing(word, kinds=STARTS_IN)}):
            data = project.read(path) or b""
            if (found := _LAUNCHER.search(data)) is not None:
                return path, data.count(b"\n", 0, found.end()) + 1
        return None

    return project.keep("started by torchrun", build)


def _lists(module: SourceModule) -> Iterator[Order]:
    """`for name in ("SLURM_PROCID", "RANK"):`, whose first variable that is set gives the number."""
    for loop in module.nodes(ast.For):
        names = loop.iter
        if not isinstance(names, (ast.Tuple, ast.List)) or not _takes_the_first(loop):
            continue
        texts = [e.value for e in names.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        own = next((i for i, text in enumerate(texts) if text in _OF_PROCESSES), None)
        if own is None or len(texts) < len(names.elts) or not (before := [t for t in texts[:own] if t in OF_TASKS]):
            continue
        written = [module.text_of(e) for e in names.elts]
        moved = [written[own], *written[:own], *written[own + 1 :]]
        edits = [
            ReplaceExpression(module.path, module.span(element), text)
            for element, old, text in zip(names.elts, written, moved, strict=True)
            if old != text
        ]
        yield Order(names, before[0], tuple(edits))


def _takes_the_first(loop: ast.For) -> bool:
    """True for `if name in os.environ:` that ends the loop, or the function."""
    test = loop.body[0] if len(loop.body) == 1 and not loop.orelse else None
    if not isinstance(test, ast.If) or not isinstance(loop.target, ast.Name) or test.orelse:
        return False
    asked = test.test
    is_set = isinstance(asked, ast.Compare) and isinstance(asked.ops[0], ast.In) and end_of(asked.comparators[0]) == "environ"
    return is_set and isinstance(test.body[-1], (ast.Break, ast.Return))


def _defaults(module: SourceModule) -> Iterator[Order]:
    """`os.environ.get("SLURM_PROCID", os.environ.get("RANK", 0))`: both keys change places."""
    for call in module.nodes(ast.Call):
        if environment(module, call) not in OF_TASKS or len(call.args) != 2:
            continue
        inner = call.args[1]
        if not isinstance(inner, ast.Call) or environment(module, inner) not in _OF_PROCESSES:
            continue
        first, second = call.args[0], inner.args[0]
        edits = (
            ReplaceExpression(module.path, module.span(first), module.text_of(second)),
            ReplaceExpression(module.path, module.span(second), module.text_of(first)),
        )
        yield Order(call, environment(module, call), edits)


def _tests(module: SourceModule) -> Iterator[Order]:
    """`if "SLURM_PROCID" in os.environ:` whose other arms read what the launcher sets."""
    for test in module.nodes(ast.If):
        if not test.orelse or (asked := asked_for_task(test.test)) is None:
            continue
        holder, positive, name = asked
        of_task, rest = (test.body, test.orelse) if positive else (test.orelse, test.body)
        numbers, others = set(_read_in(module, of_task)), set(_read_in(module, rest))
        taken = next((v for v in _read_in(module, of_task) if v in OF_TASKS), "")
        ranks = set(_OF_PROCESSES[:2])
        own = set(_overwritten(module, of_task))
        asked_first = bool(numbers & ranks - own) or (bool(numbers & own) and not others & ranks <= own)
        if not taken or not others & ranks or asked_first or is_settled(module, test):
            continue
        written = module.text_of(test.test)
        quote = "'" if "'" in written else '"'
        key = f"{quote}{'RANK' if 'RANK' in others else 'LOCAL_RANK'}{quote}"
        word = "and {} not in {}" if positive else "or {} in {}"
        code = f"{written} {word.format(key, module.text_of(holder))}"
        edit = ReplaceExpression(module.path, module.span(test.test), code)
        yield Order(test.test, taken, (edit,), "" if name == taken else name)


def _overwritten(module: SourceModule, body: list[ast.stmt]) -> Iterator[str]:
    """`os.environ["RANK"] = os.environ["SLURM_PROCID"]`: what the launcher has set is lost to all that reads it there."""
    for statement in body:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            if not isinstance(target, ast.Subscript) or not (variable := environment(module, target)):
                continue
            nodes = (n for s in body for n in walk(s) if isinstance(n, ast.expr) and n is not target)
            if all(n.lineno > statement.lineno for n in nodes if environment(module, n) == variable):
                yield variable


def asked_for_task(test: ast.expr) -> tuple[ast.expr, bool, str] | None:
    """(`os.environ`, whether a variable of Slurm is set where the test holds, its name) of a test that asks for one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = asked_for_task(test.operand)
        return (inner[0], not inner[1], inner[2]) if inner is not None and isinstance(test.operand, ast.Compare) else None
    if isinstance(test, ast.BoolOp):
        parts = (asked_for_task(v) for v in test.values) if isinstance(test.op, ast.And) else ()
        return next((p for p in parts if p is not None and p[1]), None)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return None
    key = test.left.value if isinstance(test.left, ast.Constant) else ""
    if not isinstance(key, str) or not key.startswith("SLURM_") or end_of(test.comparators[0]) != "environ":
        return None
    return test.comparators[0], isinstance(test.ops[0], ast.In), key


def is_settled(module: SourceModule, test: ast.If) -> bool:
    """True where the test, or one over it, asks for the launcher, and where it asks for an interactive session."""
    tests = [test.test, *(up.test for up in module.ancestors(test) if isinstance(up, ast.If))]
    names = {n.value for t in tests for n in walk(t) if isinstance(n, ast.Constant)}
    return bool(names & {*_OF_PROCESSES, "SLURM_JOB_NAME"})


def _read_in(module: SourceModule, body: list[ast.stmt]) -> Iterator[str]:
    """The variables that are taken for a number there: those that a line shows are none."""
    for node in (n for s in body for n in walk(s)):
        if isinstance(node, (ast.Subscript, ast.Call)) and (variable := environment(module, node)):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                continue  # `os.environ["RANK"] = …` hands it on
            up = module.parent(node)
            shown = isinstance(up, ast.Call) and last(qualified(module, up.func) or end_of(up.func)) == "print"
            if not shown:
                yield variable
