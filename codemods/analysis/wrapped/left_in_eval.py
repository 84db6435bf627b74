"""Models that rank 0 alone puts into eval mode within a training loop, and that nobody puts back into train mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over, ranks_at
from codemods.analysis.wrapped.losses import QUIET, is_quiet
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BACKWARD = frozenset({"backward", "manual_backward"})
# Layers that do in eval mode what they do not in train mode, as sources spell them.
_DROPS = (b"Dropout", b"dropout", b"DropPath")
_NORM = b"BatchNorm"


@record
class LeftInEval:
    """call: what rank 0 does under `test`, in `loop`: `model.eval()`, or a function that does it in `line` of `path`.

    name: the model in the loop. forward: the training forward of all ranks.
    """

    call: ast.Call
    name: str
    test: ast.AST
    path: str
    line: int
    forward: ast.Call
    effect: str


def left_in_eval(project: Project, module: SourceModule) -> Iterator[LeftInEval]:
    effect = _effect(project) if module.calls_named(*_BACKWARD) else ""
    if not effect:
        return
    for call in module.nodes(ast.Call):
        loop = _training_loop(module, call)
        guard = next((g for g in _guards_inside(project, module, call, loop)), None) if loop is not None else None
        if loop is None or guard is None or ranks_at(module, call, project=project) is not Ranks.ZERO:
            continue
        switched = _switched(project, module, call)
        if switched is None or _leaves_the_loop(module, call) or _may_go_back(module, loop) or _may_begin_in_eval(module):
            continue
        name, where, line = switched
        forward = _forward(module, loop, name)
        if forward is not None and not _all_evaluate(project, module, call, name):
            yield LeftInEval(call, name, guard.node, where, line, forward, effect)


def _effect(project: Project) -> str:
    """What a model of this project does in eval mode otherwise than in train mode; "" for nothing."""
    drops = any(_has_word(project, word) for word in _DROPS)
    norms = _has_word(project, _NORM)
    kept = "with frozen statistics of BatchNorm"
    return f"without dropout or {kept}" if drops and norms else "without dropout" if drops else kept if norms else ""


def _has_word(project: Project, word: bytes) -> bool:
    return any(path.endswith(".py") and not is_test_file(path) for path in project.files_containing(word))


def _guards_inside(project: Project, module: SourceModule, call: ast.Call, loop: ast.stmt) -> Iterator[Guard]:
    """The tests of the rank between the loop and the call."""
    for guard in guards_over(module, call, project=project):
        if any(up is loop for up in module.ancestors(guard.node)):
            yield guard


def _switched(project: Project, module: SourceModule, call: ast.Call) -> tuple[str, str, int] | None:
    """(model as the loop writes it, file, line) of the `model.eval()` that the call is, or that its function comes to."""
    if _end(call) == "eval" and isinstance(call.func, ast.Attribute) and not call.args:
        name = dotted(call.func.value)
        alone = isinstance(module.parent(call), ast.Expr)
        return (name, module.path, call.lineno) if name and alone else None
    site = called_function(project, module, call)
    if site is None or not _is_plain(site.node) or _may_go_back(site.module, site.node):
        return None
    for inner in (n for n in walk_scope(site.node) if isinstance(n, ast.Call) and _end(n) == "eval" and not n.args):
        held = dotted(inner.func.value) if isinstance(inner.func, ast.Attribute) else ""
        plain = site.module.statement_of(inner) in site.node.body and isinstance(site.module.parent(inner), ast.Expr)
        if held and plain and (name := _named_there(site.module, site.node, held, module, call)):
            return name, site.module.path, inner.lineno
    return None


def _is_plain(function: FunctionNode) -> bool:
    """True without decorators, but for `@torch.no_grad()`."""
    made = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return all(last(dotted(d)) in QUIET for d in made)


def _named_there(
    module: SourceModule, function: FunctionNode, name: str, there: SourceModule, call: ast.Call
) -> str:
    """How the caller writes the model: an argument, a name that both see, a field of one class; "" where that is not seen."""
    head = name.partition(".")[0]
    bound = bindings_in(module, function, head)
    if head == "self":
        return name if there is module and module.class_of(call) is module.class_of(function) else ""
    if not bound:
        return name if there is module and _sees_the_same(module, function, head, call) else ""
    if len(bound) != 1 or not bound[0].parameter or "." in name:
        return ""
    given = (bind(function, call, bound=isinstance(module.parent(function), ast.ClassDef)) or {}).get(name)
    return dotted(given) if given is not None else ""


def _sees_the_same(module: SourceModule, function: FunctionNode, name: str, call: ast.Call) -> bool:
    """True where the name that the function takes from round it is that of the caller, too."""
    caller = module.function_of(call)
    round_it = {id(up) for up in module.ancestors(function)}
    return caller is None or id(caller) in round_it or not bindings_in(module, caller, name)


def _training_loop(module: SourceModule, node: ast.AST) -> ast.stmt | None:
    """The innermost loop round the node that holds a backward pass."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if isinstance(up, _LOOPS) and any(isinstance(n, ast.Call) and _end(n) in _BACKWARD for n in walk_scope(up)):
            return up
    return None


def _end(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _may_go_back(module: SourceModule, block: ast.AST) -> bool:
    """True where something in the block may put a model into train mode: `train` of anything, also in what it calls by name.

    A helper of another name that does so is told by its own `train(`: no function of the file that the block calls may have one.
    """
    calls = [n for n in walk(block) if isinstance(n, ast.Call)]
    names = {last(dotted(c.func)) for c in calls} | {_end(c) for c in calls}
    if "train" in names or any("train" in n.lower() for n in names):
        return True
    if any(isinstance(n, ast.Attribute) and n.attr == "training" for n in walk(block)):
        return True
    own = {f.name: f for f in module.functions}
    inner = [own[n] for n in names if n in own and own[n] is not block]
    return any(isinstance(n, ast.Call) and _end(n) == "train" for f in inner for n in walk(f))


def _all_evaluate(project: Project, module: SourceModule, call: ast.Call, name: str) -> bool:
    """True where every rank puts it into eval mode as well, by itself or by the same function: they all train that way."""
    by_function = module.calls_named(last(dotted(call.func))) if _end(call) != "eval" else ()
    itself = (c for c in module.calls_named("eval") if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == name)
    home = module.function_of(call)
    others = [c for c in (*itself, *by_function) if c is not call and module.function_of(c) is home]
    return any(not ranks_at(module, c, project=project).some for c in others)


def _leaves_the_loop(module: SourceModule, call: ast.Call) -> bool:
    """True where rank 0 ends the training in the block in which it evaluates."""
    block = module.block_of(module.statement_of(call))
    return any(isinstance(s, (ast.Break, ast.Return, ast.Raise)) for s in block)


def _may_begin_in_eval(module: SourceModule) -> bool:
    """True for what `from_pretrained` gives, in eval mode, and nothing puts into train mode."""
    return module.holds(b".from_pretrained(") and not module.holds(b".train(")


def _forward(module: SourceModule, loop: ast.stmt, name: str) -> ast.Call | None:
    """The call of the model in the loop, outside of every test of the rank."""
    for call in walk_scope(loop):
        if isinstance(call, ast.Call) and dotted(call.func) == name and not is_quiet(module, call):
            if not ranks_at(module, call).some:
                return call
    return None
