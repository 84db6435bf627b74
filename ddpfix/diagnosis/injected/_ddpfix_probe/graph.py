"""The autograd graph of a loss, walked before its backward pass: which parameters it leads to, and what hides some of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEEPEST = 6  # containers within containers that are searched for tensors
MOST = 500  # outputs that are looked at


def walk(roots: list[Any], seen: set[Any] | None = None) -> tuple[set[Any], set[int], bool]:
    """(nodes, ids of the leaf tensors they end in, True where a node hides a part of the graph) from some `grad_fn`s.

    A reentrant checkpoint (`CheckpointFunctionBackward`) runs its part of the forward again inside of the backward pass: the
    parameters in it are not in the graph before.
    """
    nodes: set[Any] = set() if seen is None else seen
    leaves: set[int] = set()
    hidden = False
    todo = [r for r in roots if r is not None]
    while todo:
        node = todo.pop()
        if node in nodes:
            continue
        nodes.add(node)
        variable = getattr(node, "variable", None)  # an AccumulateGrad has one, and nothing behind it
        if variable is not None:
            leaves.add(id(variable))
            continue
        if "CheckpointFunction" in type(node).__name__:
            hidden = True
        todo += [n for n, _ in node.next_functions if n is not None and n not in nodes]
    return nodes, leaves, hidden


def outputs(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(how the caller would reach it, tensor) of every tensor in what a forward returned."""
    import torch

    if isinstance(value, torch.Tensor):
        yield name or "the output", value
    elif depth < DEEPEST:
        if isinstance(value, dict):
            for key, inner in list(value.items())[:MOST]:
                yield from outputs(inner, "%s[%r]" % (name, key), depth + 1)
        elif isinstance(value, (list, tuple)):
            fields = getattr(value, "_fields", None)
            for i, inner in enumerate(value[:MOST]):
                yield from outputs(inner, "%s.%s" % (name, fields[i]) if fields else "%s[%d]" % (name, i), depth + 1)
        elif hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
            for key, inner in list(vars(value).items())[:MOST]:
                yield from outputs(inner, "%s.%s" % (name, key), depth + 1)
