"""Steps of an optimizer behind micro batches that all ran under `no_sync()`: no gradient of them is ever averaged.

DDP averages in a backward whose forward ran outside of `no_sync()`. Where none follows, the optimizer steps by what the own rank
has. Measured with torch 2.13 on two processes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import behind
from codemods.analysis.ranks.reached_collectives import may_put_together
from codemods.analysis.wrapped.by_hand_averages import averages_by_hand
from codemods.analysis.wrapped.sync_switches import FLAG
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_OPTIMIZER = lazy(r"optim|\bopts?\b|scaler", re.I)
_OF_RUNS = lazy(r"distrib|world|ddp|multi|parallel|n_?gpus?\b|num_?gpus?\b|device_count|initialized", re.I)
# Weights that are averaged now and then make up for gradients that are not.
_OF_WEIGHTS = lazy(rb"(?:all_?reduce|average|broadcast|sync)\w*[^\n]{0,60}(?:param|weight|model|net\b|\.data\b)", re.I)
_LOCAL_STEPS = (b"PostLocalSGD", b"ModelAverager", b"average_parameters")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_UP = (ast.If, ast.With, ast.Try)


@record
class Quiet:
    """quiet: the `no_sync()` that is entered round the loop over the micro batches. backward: that of one micro batch."""

    quiet: ast.Call
    wrapper: str
    backward: ast.Call
    step: ast.Call


def quiet_steps(project: Project, module: SourceModule) -> Iterator[Quiet]:
    for call in module.calls_named("no_sync"):
        wrapper = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        block = _block(module, call) if wrapper and not call.args and not call.keywords else None
        backward = _micro_batches(module, block, wrapper) if block is not None else None
        if block is None or backward is None:
            continue
        step = _step_behind(project, module, block)
        if step is None:
            left(module, call, "no step of an optimizer is seen to follow without a backward pass between")
        elif _one_optimizer(module) and not _averages_otherwise(project, module):
            yield Quiet(call, wrapper, backward, step)


def _block(module: SourceModule, call: ast.Call) -> ast.With | None:
    """The `with` that enters the context in each run of several processes."""
    value: ast.expr = call
    up = module.parent(call)
    if isinstance(up, ast.IfExp):
        if call is up.test or not _asks_for_several(module, up.test) or call is up.orelse:
            return None
        value, up = up, module.parent(up)
    if isinstance(up, ast.withitem):
        block = module.parent(up)
        return block if isinstance(block, ast.With) else None
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        return _entered(module, up.targets[0], value)
    return None


def _entered(module: SourceModule, name: ast.Name, value: ast.expr) -> ast.With | None:
    """The one block that enters what a name holds."""
    function = module.function_of(name)
    for block in module.nodes(ast.With):
        if module.function_of(block) is function and any(
            isinstance(i.context_expr, ast.Name) and i.context_expr.id == name.id for i in block.items
        ):
            return block if only_value(bindings_of(module, name)) is value else None
    return None


def _asks_for_several(module: SourceModule, test: ast.expr) -> bool:
    """True for a test of how many processes there are, and of nothing else."""
    return not isinstance(test, ast.BoolOp) and bool(_OF_RUNS.search(module.text_of(test)))


def _micro_batches(module: SourceModule, block: ast.With, wrapper: str) -> ast.Call | None:
    """The backward pass in a loop of the block, with a forward of the wrapper, where nothing in it switches the average on."""
    inside = [n for statement in block.body for n in walk(statement)]
    if any(isinstance(n, ast.Attribute) and n.attr in (FLAG, "no_sync", "step") for n in inside):
        return None
    for loop in (n for n in inside if isinstance(n, (ast.For, ast.While))):
        calls = [n for n in walk(loop) if isinstance(n, ast.Call) and module.function_of(n) is module.function_of(block)]
        passes = [c for c in calls if _goes_back(c)]
        if passes and any(dotted(c.func) in (wrapper, f"{wrapper}.forward") for c in calls):
            return passes[0]
    return None


def _goes_back(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _step_behind(project: Project, module: SourceModule, block: ast.With) -> ast.Call | None:
    """The step that every way from the end of the block comes to, with no backward pass and no exit between."""
    node: ast.stmt = block
    while True:
        for statement in behind(module, node):
            if (step := _own_step(module, statement)) is not None:
                return step
            if _may_change(project, module, statement):
                return None
        up = module.parent(node)
        if not isinstance(up, _UP) or (isinstance(up, ast.Try) and not any(s is node for s in up.body)):
            return None
        node = up


def _own_step(module: SourceModule, statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and _stepped(call) else None


def _stepped(call: ast.Call) -> str:
    """The optimizer that a call steps, `scaler.step(optimizer)` included; "" for any other call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return ""
    name = last(dotted(call.args[0] if call.args else call.func.value)).lower()
    return name if _OPTIMIZER.search(name) else ""


def _may_change(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True where a statement may leave, step, go back, or send something between the ranks."""
    for node in walk(statement):
        if isinstance(node, _LEAVES):
            return True
        if isinstance(node, ast.Call) and (_goes_back(node) or _stepped(node) or may_put_together(project, module, node)):
            return True
        site = called_function(project, module, node) if isinstance(node, ast.Call) else None
        if site is not None and any(isinstance(n, ast.Call) and (_goes_back(n) or _stepped(n)) for n in walk(site.node)):
            return True
    return False


def _one_optimizer(module: SourceModule) -> bool:
    """False where another model may be the one that steps: a critic is quiet while the generator trains through it."""
    return len({name for call in module.calls_named("step") if (name := _stepped(call))}) == 1


def _averages_otherwise(project: Project, module: SourceModule) -> bool:
    if averages_by_hand(project) or any(project.files_containing(word) for word in _LOCAL_STEPS):
        return True
    return any(_OF_WEIGHTS.search(line) for line in (project.read(module.path) or b"").splitlines() if b"no_sync" not in line)
