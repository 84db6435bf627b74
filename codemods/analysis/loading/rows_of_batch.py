"""Is a value of an evaluation loop a row for each sample of its batch, by what it is made of?"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.call_graph import find_function
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

# What leaves the number and the order of the rows as they are.
_KEEPS = frozenset({"to", "cuda", "cpu", "detach", "clone", "contiguous", "float", "double", "half", "bfloat16", "long", "int"})
_PAD = "torch.nn.functional.pad"
_DEPTH = 8


@record
class _Rows:
    project: Project
    module: SourceModule
    loop: ast.For

    def made(self, node: ast.expr, depth: int = 0) -> bool:
        """True for what `generate` makes of the batch, and for what a function makes of it by chunks and puts together again."""
        if depth > _DEPTH:
            return False
        if isinstance(node, ast.Name):
            return self._are_made(self._sources(node.id), depth)
        if not isinstance(node, ast.Call):
            return False
        if (inner := self._kept(node)) is not None:
            return self.made(inner, depth + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "generate":
            several = any(k.arg == "num_return_sequences" for k in node.keywords)
            return not several and self._is_of_batch(node)
        return self._goes_by_chunks(node)

    def _are_made(self, values: list[ast.expr], depth: int) -> bool:
        """All are, or one is and each other one is a call that is handed the same: two arms that give the same."""
        sure = [v for v in values if self.made(v, depth + 1)]
        others = [v for v in values if v not in sure]
        given = {ast.dump(a) for v in sure if isinstance(v, ast.Call) for a in v.args if self._is_of_batch(a)}
        return bool(sure) and all(isinstance(o, ast.Call) and bool(o.args) and ast.dump(o.args[0]) in given for o in others)

    def _kept(self, call: ast.Call) -> ast.expr | None:
        """`rows` of `rows.to(device)`, of `F.pad(rows, …)` and of `accelerator.pad_across_processes(rows, dim=1)`."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPS:
            return call.func.value
        across = last(dotted(call.func)) == "pad_across_processes" and _is_behind_rows(call)
        pads = across or (qualified(self.module, call.func) == _PAD and _is_at_end_of_rows(call))
        return call.args[0] if pads and call.args else None

    def _goes_by_chunks(self, call: ast.Call) -> bool:
        """True for a function of the project that goes through rows by chunks, and puts the results together again."""
        site = find_function(self.project, self.module, dotted(call.func)) if dotted(call.func) else None
        parameter = _taken_by_chunks(site.module, site.node) if site is not None else ""
        if site is None or not parameter:
            return False
        names = [a.arg for a in site.node.args.args]
        given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        return parameter in given and self._is_of_batch(given[parameter])

    def _is_of_batch(self, node: ast.expr) -> bool:
        """True for what is worked out from the batch of the loop."""
        batch, seen, waiting = batch_names(self.loop), set[str](), [node]
        while waiting:
            names = {n.id for n in walk(waiting.pop()) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if names & batch:
                return True
            waiting += [b.value for name in names - seen for b in self._bound(name) if b.value is not None]
            seen |= names
        return False

    def _sources(self, name: str) -> list[ast.expr]:
        """What the loop gives a name as a whole, but itself, padded or moved; nothing where it may also be something else."""
        bound = self._bound(name)
        if any(b.value is None or b.part or isinstance(b.node, ast.AugAssign) for b in bound):
            return []
        return [b.value for b in bound if b.value is not None and not self._is_itself(b.value, name)]

    def _is_itself(self, value: ast.expr, name: str) -> bool:
        inner: ast.expr | None = value
        while isinstance(inner, ast.Call):
            inner = self._kept(inner)
        return isinstance(inner, ast.Name) and inner.id == name

    def _bound(self, name: str) -> list[Binding]:
        """The bindings of a name inside the loop."""
        first, end = self.loop.lineno, self.loop.end_lineno or 0
        found = bindings_in(self.module, self.module.function_of(self.loop), name)
        return [b for b in found if first < getattr(b.node, "lineno", 0) <= end]


def is_made_of_batch(project: Project, module: SourceModule, node: ast.expr, loop: ast.For) -> bool:
    """True for generated tokens, and for features that are worked out by chunks of the batch, whatever they are called.

    A network's output alone may be a loss, which is one number: it is none of these. Nor is what counts each sample once.
    """
    return _Rows(project, module, loop).made(node) and not goes_by_sample(loop)


def batch_names(loop: ast.For) -> set[str]:
    target: ast.expr = loop.target
    if isinstance(loop.iter, ast.Call) and _counts(loop.iter) and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    return {n.id for n in walk(target) if isinstance(n, ast.Name)}


def _counts(call: ast.Call) -> bool:
    """`enumerate(loader)`, also in `tqdm(enumerate(loader))`."""
    return any(isinstance(n, ast.Call) and dotted(n.func) == "enumerate" for n in walk(call))


def _is_behind_rows(call: ast.Call) -> bool:
    """`pad_across_processes(tokens, dim=1)`: without a `dim`, it is the rows that are padded."""
    given = [k.value for k in call.keywords if k.arg == "dim"] or call.args[1:2]
    return bool(given) and ast.unparse(given[0]) in ("-1", "1")


def _is_at_end_of_rows(call: ast.Call) -> bool:
    """`F.pad(tokens, (0, n))`: a longer tuple pads another dimension, too."""
    width = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "pad"), None)
    return isinstance(width, (ast.Tuple, ast.List)) and len(width.elts) == 2


def _taken_by_chunks(module: SourceModule, function: FunctionNode) -> str:
    """`rows` of `return torch.cat([f(rows[i : i + n]) for i in range(0, len(rows), n)])`; "" for any other function."""
    returns = [n.value for n in walk_scope(function) if isinstance(n, ast.Return)]
    call = returns[0] if len(returns) == 1 else None
    if not isinstance(call, ast.Call) or qualified(module, call.func) != "torch.cat" or not call.args:
        return ""
    along = [*call.args[1:], *(k.value for k in call.keywords)]
    parts = call.args[0]
    if not isinstance(parts, (ast.ListComp, ast.GeneratorExp)) or any(ast.unparse(a) != "0" for a in along):
        return ""
    pieces = [n for n in walk(parts.elt) if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice)]
    names = {a.arg for a in function.args.args}
    taken = {n.value.id for n in pieces if isinstance(n.value, ast.Name) and n.value.id in names}
    return taken.pop() if len(taken) == 1 and len(parts.generators) == 1 and not parts.generators[0].ifs else ""


def goes_by_sample(loop: ast.For) -> bool:
    """True where results are put under a key that is worked out, or a test asks whether one is there: each counts once.

    What is put back into the batch is gone with it.
    """
    batch = batch_names(loop)
    for node in walk(loop):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and dotted(node.value) not in batch:
            if not isinstance(node.slice, (ast.Constant, ast.Slice)):
                return True
        if isinstance(node, ast.Compare) and any(isinstance(o, (ast.In, ast.NotIn)) for o in node.ops):
            if not isinstance(node.left, ast.Constant):
                return True
        if isinstance(node, ast.Call) and last(dotted(node.func)) in ("unique", "setdefault", "add_to_set", "set"):
            return True
    return False
