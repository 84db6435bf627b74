"""DDP113: one tensor, repeated, as the list that a gather writes into."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.distribution import is_test_module
from codemods.analysis.literals import is_none
from codemods.analysis.names import last, qualified
from codemods.analysis.reaching import reaching
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.sites import Site
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_Repeated = ast.BinOp | ast.ListComp
# function -> the keyword and the place of the list that it writes into. `all_gather_object` sets the elements: it may be given
# `[None] * n`.
_WRITES = {"all_gather": ("tensor_list", 0), "gather": ("gather_list", 1), "all_to_all": ("output_tensor_list", 0)}
_MAKES = frozenset(
    {"zeros_like", "empty_like", "ones_like", "rand_like", "full_like", "zeros", "empty", "ones", "full", "tensor"}
)  # fmt: skip
_COPIES = frozenset({"clone", "new_zeros", "new_empty", "new_ones", "new_full"})
_SAFE, _UNSAFE, _DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


class OneSlotGathered(DdpCodemod):
    """A gather writes the tensors of all ranks into one tensor.

    ## What it does
    Finds `[tensor] * world_size` and `[tensor for _ in range(world_size)]` as the list that `all_gather`, `gather` or
    `all_to_all` of torch writes into, and makes it a list of as many tensors.

    ## Why it matters
    `[x] * n` holds one tensor n times, and so does `[x for _ in range(n)]`. The gather writes each rank's tensor over the one
    before it without an error: every entry of the list is that of the last rank, and what is worked out of the list (a mean, a
    maximum, the accuracy) is that of one rank.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    def largest(x):
        parts = [torch.zeros_like(x)] * dist.get_world_size()
        dist.all_gather(parts, x)
        return torch.cat(parts).max()
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    def largest(x):
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return torch.cat(parts).max()
    ```

    ## Safety
    Safe where the repeated expression makes a tensor (`zeros_like`, `empty_like`, `new_zeros`, `clone`): on one process the list
    is the same. Unsafe where it is a name: the list gets tensors of their own, and the name's tensor is not written any more.

    ## Refuses
    - Says nothing of `all_gather_object` and `gather_object`, which set the entries of the list.
    - Says nothing where the list gets entries one by one before the gather, or where another value may be the list.
    - Says nothing of a list that comes as an argument, and of a list repeated once.
    - Says nothing of a comprehension of anything else than a name that is the same in each of its rounds, its `data` or its
      `detach()`.
    - Reports an expression that is no plain making of a tensor, and a list in the body of a class.
    - A repository's own tests.

    ## References
    Python: "`s * n`: items in the sequence s are not copied; they are referenced multiple times". Run on two processes with torch
    2.13 and gloo: `all_gather` and `gather` leave the tensor of rank 1 in both entries.
    """

    code = "DDP113"
    severity = "data"
    subject = "Gather into a tensor for each rank"
    must_show = "What is worked out of the gathered list is that of all ranks; on one process nothing changes."
    printed = ()
    TRIGGERS = ((b"gather(", b"all_to_all("), (b"distributed",))
    SITES = (
        Site(rb"\] ?\* ?[\w(]|[\w)] ?\* ?\[", b"]*", b"] *", b"*[", b"* ["),
        Site(rb"\bfor\s+\w+\s+in\b", b"for"),
    )
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        done: set[int] = set()
        for call in module.calls_named(*_WRITES):
            name = qualified(module, call.func)
            if not name.startswith("torch.distributed.") or (given := _list_of(call, last(name))) is None:
                continue
            for repeated in _lists(module, given, call):
                if id(repeated) not in done:
                    done.add(id(repeated))
                    yield self._tell(module, call, repeated, last(name))

    def _tell(self, module: SourceModule, call: ast.Call, repeated: _Repeated, name: str) -> Finding:
        edits, level, reason = _repair(module, repeated)
        text = " ".join(module.text_of(repeated).split())
        return self.finding(
            module,
            repeated,
            f"`{text}` holds one tensor several times: `{name}` writes the tensors of all ranks over each other, and every entry "
            "is that of the last rank",
            level=level,
            edits=edits,
            evidence=[Evidence("static", f"`{name}` writes into the list", module.path, call.lineno)],
            reason=reason,
        )


def _list_of(call: ast.Call, name: str) -> ast.expr | None:
    keyword, place = _WRITES[name]
    given = next((k.value for k in call.keywords if k.arg == keyword), None)
    if given is None and len(call.args) > place and not any(isinstance(a, ast.Starred) for a in call.args):
        given = call.args[place]
    return given


def _lists(module: SourceModule, given: ast.expr, call: ast.Call) -> list[_Repeated]:
    """The repeated lists that are written into; none where one of the values of the name is another one."""
    if not isinstance(given, ast.Name):
        return _repeated(module, given) or []
    function = module.function_of(call)
    if _is_filled(module, call, given.id):
        return []
    found: list[_Repeated] = []
    for bound in reaching(module, given, bindings_in(module, function, given.id)):
        here = _repeated(module, bound.value) if bound.value is not None and not bound.part else None
        if here is None:
            return []
        found += here
    return found


def _repeated(module: SourceModule, node: ast.expr) -> list[_Repeated] | None:
    """The repeated lists of an expression, without the arms of a conditional one that hold no list; None for anything else."""
    if isinstance(node, ast.IfExp):
        arms = [_repeated(module, arm) for arm in (node.body, node.orelse) if not is_none(arm)]
        return [found for arm in arms for found in arm or []] if None not in arms else None
    if is_none(node):
        return []
    if isinstance(node, ast.ListComp):
        return [node] if _is_of_one(node) else None
    parts = _parts(node)
    if parts is None or _is_one(parts[1]) or not _may_be_tensor(parts[0]):
        return None
    assert isinstance(node, ast.BinOp)
    return [node]


def _is_of_one(node: ast.ListComp) -> bool:
    """True for `[x for _ in range(n)]`: each round gives the memory of the one `x`, as `x.data` and `x.detach()` do."""
    each, rounds = node.elt, node.generators[0].iter
    if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "detach":
        each = each.func.value
    elif isinstance(each, ast.Attribute) and each.attr == "data":
        each = each.value
    once = isinstance(rounds, ast.Call) and len(rounds.args) == 1 and _is_one(rounds.args[0])
    if not isinstance(each, ast.Name) or once:
        return False
    inside = [n for generator in node.generators for n in (generator.target, generator.iter, *generator.ifs)]
    bound = (n for part in inside for n in walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return len(node.generators) == 1 and all(n.id != each.id for n in bound)


def _parts(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """`x` and `n` of `[x] * n`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for each, count in ((node.left, node.right), (node.right, node.left)):
        if isinstance(each, ast.List) and len(each.elts) == 1 and not isinstance(each.elts[0], ast.Starred):
            return each.elts[0], count
    return None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _may_be_tensor(node: ast.expr) -> bool:
    return isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.Subscript))


def _is_filled(module: SourceModule, call: ast.Call, name: str) -> bool:
    """True where entries are put into the list one by one before the gather (`parts[i] = torch.zeros_like(x)`)."""
    function = module.function_of(call)
    for use in module.nodes(ast.Subscript):
        if isinstance(use.ctx, ast.Store) and isinstance(use.value, ast.Name) and use.value.id == name:
            if module.function_of(use) is function and use.lineno < call.lineno:
                return True
    return False


def _repair(module: SourceModule, node: _Repeated) -> tuple[list[Edit], Applicability, str]:
    if isinstance(node, ast.ListComp):
        text = module.text_of(node.elt)
        reason = f"assumes that `{text}` itself is not read for what the gather writes"
        return [ReplaceExpression(module.path, module.span(node.elt), f"{text}.clone()")], _UNSAFE, reason
    parts = _parts(node)
    assert parts is not None
    each, count = parts
    text, number = module.text_of(each), module.text_of(count)
    told = f"write `[{text} for _ in range({number})]`: that makes a tensor for each rank"
    if _in_class_body(module, node) or any(isinstance(n, ast.Name) and n.id == "_" for n in walk(node)):
        return [], _DISPLAY, told
    if isinstance(each, ast.Call) and _makes_a_tensor(module, each):
        written = f"[{text} for _ in range({number})]"
        return [ReplaceExpression(module.path, module.span(node), written)], _SAFE, ""
    if isinstance(each, ast.Name):
        written = f"[{text}.clone() for _ in range({number})]"
        reason = f"assumes that `{text}` itself is not read for what the gather writes"
        return [ReplaceExpression(module.path, module.span(node), written)], _UNSAFE, reason
    return [], _DISPLAY, told


def _makes_a_tensor(module: SourceModule, call: ast.Call) -> bool:
    """True for a call that makes a new tensor each time it is made, with the moves behind it (`torch.zeros(3).cuda()`)."""
    if any(isinstance(n, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) for n in walk(call)):
        return False
    func = call.func
    name = qualified(module, func)
    if name.startswith("torch.") and last(name) in _MAKES:
        return True
    if not isinstance(func, ast.Attribute):
        return False
    if func.attr in _COPIES:
        return True
    return func.attr in ("to", "cuda", "cpu", "type", "float") and isinstance(func.value, ast.Call) and (
        _makes_a_tensor(module, func.value)
    )  # fmt: skip


def _in_class_body(module: SourceModule, node: ast.AST) -> bool:
    """In the body of a class a comprehension does not see the names beside it."""
    return module.function_of(node) is None and any(isinstance(up, ast.ClassDef) for up in module.ancestors(node))
