"""What the object is that a method is called on: a logger, a buffer, an experiment, one of a project's classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite, find_class
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.natures import Nature, nature, values_of
from codemods.analysis.variance.analysis import variance
from codemods.files.source import SourceModule, child_nodes
from codemods.store.project import Project


def classes_of(project: Project, module: SourceModule, func: ast.Attribute) -> Iterator[ClassSite]:
    """The classes of the project that the object of a method call may be made from; none where no class has such a method."""
    if not project.files_defining(func.attr):
        return
    values = values_of(module, func.value) or _stored(module, func.value)
    for value in values:
        if isinstance(value, ast.Call) and (made := find_class(project, module, dotted(value.func))) is not None:
            yield made
    if not any(isinstance(v, ast.Call) for v in values):
        thing = variance(project).value(module, func.value).thing
        if thing is not None and thing.site is not None:
            yield thing.site


def _stored(module: SourceModule, held: ast.expr) -> list[ast.expr]:
    """What is stored in the place that an item is taken of: `Meter(name)` of `self.meters[name] = Meter(name)`."""
    name = dotted(held.value) if isinstance(held, ast.Subscript) else ""
    if not name:
        return []
    scope = module.class_of(held) if name.startswith("self.") else module.function_of(held)
    found: list[ast.expr] = []
    for assign in module.nodes(ast.Assign):
        if any(isinstance(t, ast.Subscript) and dotted(t.value) == name for t in assign.targets):
            if (module.class_of(assign) if name.startswith("self.") else module.function_of(assign)) is scope:
                found.append(assign.value)
    return found


def is_experiment(module: SourceModule, receiver: ast.expr) -> bool:
    """True for a name that holds `logger.experiment`, a dummy on every rank but 0."""
    values = values_of(module, receiver) if isinstance(receiver, ast.Name) else []
    return bool(values) and all(last(dotted(v)) == "experiment" for v in values)


def is_of_an_experiment(module: SourceModule, target: ast.expr) -> bool:
    """True for `logger.experiment.summary`, whatever is put into it: rank 0's object, or a dummy's function."""
    part = target.value if isinstance(target, ast.Attribute) else target
    return ".experiment." in f"{dotted(target)}." or is_experiment(module, part)


def is_script_module(module: SourceModule, receiver: ast.expr) -> bool:
    """True for what `torch.jit` has compiled: its `save` writes a file of this process and waits for nobody."""
    values = [v for v in values_of(module, receiver) if isinstance(v, ast.Call)]
    return bool(values) and all(qualified(module, v.func).startswith("torch.jit.") for v in values)


def is_buffer(module: SourceModule, receiver: ast.expr) -> bool:
    return last(dotted(receiver)) in ("buffer", "buf", "stream", "output") and nature(module, receiver) is Nature.HOST


def is_logger(module: SourceModule, receiver: ast.expr, class_of: Callable[[], ClassFacts | None]) -> bool:
    """True where the project makes this logger with `logging.getLogger`, with nothing of its own round it."""
    for value in values_of(module, receiver):
        if isinstance(value, ast.Call):
            if qualified(module, value.func) == "logging.getLogger":
                return True
            if dotted(value.func).startswith("self.") and (facts := class_of()) is not None:
                made = facts.method(last(dotted(value.func)))
                if made and any(qualified(made[0].module, c.func) == "logging.getLogger"
                                for c in ast.walk(made[1]) if isinstance(c, ast.Call)):  # fmt: skip
                    return True
    return False


def root_of(node: ast.expr) -> str:
    """The last written name of a receiver: `logger` of `self.logger`, of `logger.opt(…)`."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return last(dotted(node))


def mode_of(call: ast.Call, position: int) -> str:
    """The mode a file is opened with, "?" where it is no constant."""
    given: ast.expr | None = call.args[position] if len(call.args) > position else None
    given = next((k.value for k in call.keywords if k.arg == "mode"), given)
    if given is None:
        return "r"
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else "?"


def within(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and what is below it, but for functions and classes, which only run when they are called."""
    stack: list[ast.AST] = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield top
        if children := child_nodes(top):
            children.reverse()
            stack += children
