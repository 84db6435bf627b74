"""Random numbers that decide over samples while a model is trained: noise, time steps, masks; and what they are drawn from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.batch_sizes import names_a_batch_size
from codemods.analysis.loading.part_orders import orders_parts
from codemods.analysis.loading.passes import CLIMBS, evaluates, evaluates_by_name, is_head
from codemods.analysis.loading.same_program import MOST_IMPORTERS, callers, reached, same_program
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.uses import constructions
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DRAWS = frozenset({"torch.randn", "torch.rand", "torch.randint", "torch.randn_like", "torch.rand_like", "torch.randint_like",
                    "torch.bernoulli", "torch.normal"})  # fmt: skip
_LIKE = frozenset({"torch.randn_like", "torch.rand_like", "torch.randint_like", "torch.bernoulli"})
# A size that is that of the batch.
_OF_A_BATCH = lazy(r"\.shape\b|\blen\(|\.size\(|\b(?:\w+_)?batch_?size\b|\b(bsz|bs|b|n)\b", 0)
# The time of each sample in a diffusion: what the `forward` of such a model draws is no dropout, and only training draws it.
_TIME = lazy(r"^(?:t|ts|time|times|time_?steps?)\s*=|time_?steps\b|num_steps\b|diffusion_steps")
# What a file with draws holds, whatever it calls torch; `rand` is no part of `random`.
_WORDS = (b"rand", b"bernoulli", b"normal")
_NAMED = lazy(rb"\b(?:" + b"|".join(name.removeprefix("torch.").encode() for name in sorted(_DRAWS)) + rb")\b")


@record
class Draw:
    """A draw with a number for each sample, in a training step. generator: what it draws from; None: the process's numbers."""

    module: SourceModule
    call: ast.Call
    generator: ast.expr | None


def draws_near(project: Project, path: str) -> tuple[Draw, ...]:
    """The draws in the programs of a file."""
    files = project.keep("files with draws", lambda: frozenset(p for p in may_train(project) if draws_in(project, p)))
    return tuple(d for p in sorted(files) if same_program(project, path, p) for d in draws_in(project, p))


def draws_in(project: Project, path: str) -> tuple[Draw, ...]:
    """The draws of one file."""
    return project.memo(("draws in", path), lambda: tuple(_all(project, path)))


def may_train(project: Project) -> frozenset[str]:
    """The files with draws that a training step may come to: one in them, or in a file that imports them, over others too."""
    return project.keep("draws that may train", lambda: frozenset(_near_a_step(project)))


def _near_a_step(project: Project) -> Iterator[str]:
    steps = {p for word in (b"backward(", b"def training_step") for p in project.files_containing(word) if not is_test_file(p)}
    for path in {p for word in _WORDS for p in project.files_containing(word) if not is_test_file(p)}:
        if _NAMED.search(project.read(path) or b"") is None:
            continue
        users = project.files_importing(stem_of(path))
        near = path in steps or not steps.isdisjoint(users) or any(path in reached(project, step) for step in steps)
        if near or (_hides(project, path) and any(not steps.isdisjoint(reached(project, u)) for u in users[:MOST_IMPORTERS])):
            yield path


def _hides(project: Project, path: str) -> bool:
    """True for a file that may hide a part of each sample: a script may import it beside what makes the steps."""
    data = project.read(path) or b""
    return b"argsort" in data and b"torch.rand" in data


def _all(project: Project, path: str) -> Iterator[Draw]:
    module = project.module(path)
    for call in module.nodes(ast.Call) if module is not None else ():
        if module is None or not _is_for_samples(module, call):
            continue
        in_model = _is_time(module, call) or orders_parts(module, call)
        if _trains(project, module, call, 0, frozenset(), in_model=in_model):
            yield Draw(module, call, next((k.value for k in call.keywords if k.arg == "generator"), None))


def _is_for_samples(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    if name not in _DRAWS:
        return False
    given = [*call.args, *(k.value for k in call.keywords if k.arg in ("size", "input", "n", None))]
    return name in _LIKE or any(_OF_A_BATCH.search(module.text_of(a)) or names_a_batch_size(module, a) for a in given)


def _is_time(module: SourceModule, call: ast.Call) -> bool:
    """`t = torch.randint(0, self.num_timesteps, (b,))`."""
    return qualified(module, call.func) == "torch.randint" and _TIME.search(module.text_of(module.statement_of(call))) is not None


def _trains(
    project: Project, module: SourceModule, node: ast.AST, climbs: int, seen: frozenset[int], *, in_model: bool = False
) -> bool:
    """True where a place is in a training step: a loop with a backward pass, `training_step`, or what either calls.

    in_model: what the `forward` of a model draws counts, too: it is no dropout.
    """
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.While)) and not is_head(up, below) and _goes_backward(up):
            return True
        below = up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            each_step = _makes_no_graph(up) and not evaluates_by_name(up)  # it prepares the batch
            if (evaluates(up) and not each_step) or climbs >= CLIMBS or id(up) in seen:
                return False
            owner = module.parent(up)
            if isinstance(owner, ast.ClassDef) and up.name == "training_step":
                return class_facts(project, module, owner).is_a(Role.LIGHTNING_MODULE)
            if isinstance(owner, ast.ClassDef) and up.name == "__call__":
                return _object_is_called(project, ClassSite(module, owner), climbs, seen | {id(up)})
            if up.name == "forward" and in_model:
                return isinstance(owner, ast.ClassDef)
            if up.name in ("forward", "__init__", "__getitem__", "__iter__"):
                return False
            if each_step:
                calls = callers(project, module, up)
                return any(_is_made_each_step(s.module, s.call) for s in calls) and _callers_train(
                    project, module, up, climbs, seen | {id(up)}, in_model=in_model
                )
            return _callers_train(project, module, up, climbs, seen | {id(up)}, in_model=in_model)
    return False


def _makes_no_graph(function: FunctionNode) -> bool:
    return any("no_grad" in ast.unparse(d) for d in function.decorator_list)


def _is_made_each_step(module: SourceModule, call: ast.Call) -> bool:
    """True for `inputs, noise = prepare(batch)` in the loop that goes backward, under no test."""
    statement = module.statement_of(call)
    loop = module.parent(statement)
    if isinstance(loop, ast.With):
        loop = module.parent(loop)
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(loop, (ast.For, ast.While)) and _goes_backward(loop)


def in_training_loop(project: Project, module: SourceModule, node: ast.AST, climbs: int = 0) -> bool:
    """True where each round of a loop with a backward pass may come to a place, through functions of every name."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.While)) and not is_head(up, below) and _goes_backward(up):
            return True
        below = up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return climbs < CLIMBS and any(
                in_training_loop(project, s.module, s.call, climbs + 1) for s in callers(project, module, up)
            )
    return False


def _callers_train(
    project: Project, module: SourceModule, function: FunctionNode, climbs: int, seen: frozenset[int], *, in_model: bool
) -> bool:
    return any(
        _trains(project, s.module, s.call, climbs + 1, seen, in_model=in_model) for s in callers(project, module, function)
    )


def _object_is_called(project: Project, site: ClassSite, climbs: int, seen: frozenset[int]) -> bool:
    """True where an object of a class is given a name that a training step calls."""
    uses = constructions(project, site.module, site.node)
    for made in uses.outside_tests().calls if uses is not None else ():
        up = made.module.parent(made.call)
        targets = {dotted(t) for t in up.targets} if isinstance(up, ast.Assign) else set()
        for name in targets - {""}:
            for call in made.module.calls_named(name.rpartition(".")[2]):
                if dotted(call.func) == name and _trains(project, made.module, call, climbs + 1, seen):
                    return True
    return False


def _goes_backward(loop: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "backward" for n in walk(loop))
