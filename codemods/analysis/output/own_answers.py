"""Is a value what an object of the project gave back for this rank's share of the data?

`results = evaluator.evaluate(model)`, whose class makes a `DistributedSampler` on the way and puts nothing together: each rank
has the answers for its own samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.names import dotted, end_of, last
from codemods.analysis.output.own_batches import joins_the_ranks
from codemods.analysis.ranks.object_class import answers_of_its_own, class_of_object
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_SHARES = b"DistributedSampler"
_TRAINS = frozenset({"backward", "step"})
_STEPS = 4


def is_answer_for_a_share(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for such a call, and for a name that is bound to nothing else."""
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
        return isinstance(value, ast.Call) and is_answer_for_a_share(project, module, value)
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or not project.files_containing(_SHARES):
        return False
    made = class_of_object(project, module, func.value)
    if made is None or not made.module.holds(_SHARES) or not answers_of_its_own(project, made, func.attr):
        return False
    facts = class_facts(project, made.module, made.node)

    def build() -> bool:
        calls = list(_calls_below(facts, func.attr, _STEPS))
        ends = {end_of(c.func) for c in calls}
        return _SHARES.decode() in ends and _TRAINS.isdisjoint(ends) and not any(joins_the_ranks(c) for c in calls)

    return project.keep(("answer for a share", made.module.path, made.node.lineno, func.attr), build)


def _calls_below(facts: ClassFacts, name: str, steps: int) -> Iterator[ast.Call]:
    """The calls that a method makes, with those of the methods of its object that it calls."""
    seen: set[FunctionNode] = set()
    names = [name]
    for _ in range(steps):
        methods = [m[1] for n in names if (m := facts.method(n)) is not None and m[1] not in seen]
        seen.update(methods)
        calls = [n for f in methods for n in walk(f) if isinstance(n, ast.Call)]
        yield from calls
        names = [last(dotted(c.func)) for c in calls if dotted(c.func).startswith("self.")]
