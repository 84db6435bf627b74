"""Products of a number of nodes and WORLD_SIZE, which counts the processes of all nodes already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.ranks.counted_among import Among, environment, is_node_count, is_node_index, sets_environment, size_of
from codemods.analysis.ranks.values_behind import values_behind
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class WorldAsNode:
    """product: where a number of nodes, or the number of this one, is multiplied by `size`, which already counts all nodes.

    read: the expression that the size comes from.
    """

    product: ast.BinOp
    size: ast.expr
    read: ast.expr
    read_in: SourceModule


def worlds_as_nodes(project: Project, module: SourceModule) -> Iterator[WorldAsNode]:
    """The first product of each size, in a file that reads the local rank: there a launcher numbers all the processes."""
    if not any(environment(module, n) == "LOCAL_RANK" for n in (*module.nodes(ast.Subscript), *module.nodes(ast.Call))):
        return
    if sets_environment(project, "LOCAL_RANK"):
        return
    seen: set[int] = set()
    for product in module.nodes(ast.BinOp):
        if not isinstance(product.op, ast.Mult):
            continue
        for nodes, size in ((product.left, product.right), (product.right, product.left)):
            if not (is_node_count(module, nodes) or is_node_index(module, nodes)):
                continue
            values = values_behind(project, module, size)
            if len(values) == 1 and size_of(project, values[0]) is Among.WORLD and id(values[0].node) not in seen:
                seen.add(id(values[0].node))
                yield WorldAsNode(product, size, values[0].node, values[0].module)


def only_multiplied(module: SourceModule, name: ast.Name) -> bool:
    """True where every read of a name is a factor of a product with a number of nodes."""
    function = module.function_of(name)
    reads = [n for n in module.reads_of(name.id) if isinstance(n, ast.Name) and module.function_of(n) is function]
    for read in reads:
        up = module.parent(read)
        if not isinstance(up, ast.BinOp) or not isinstance(up.op, ast.Mult):
            return False
        other = up.right if up.left is read else up.left
        if not (is_node_count(module, other) or is_node_index(module, other)):
            return False
    return bool(reads)
