"""Samplers that repeat samples to even out the ranks, and what makes one repeat nothing, or nothing that counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.literals import is_true
from codemods.analysis.loading.origins import Origin, Passed, made_facts, origins
from codemods.analysis.loading.passes import training_passes
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, loader_of, samplers_of
from codemods.analysis.loading.told_by_calls import may_be_off, told_by_calls
from codemods.analysis.loading.training_samplers import is_of_training_alone
from codemods.analysis.names import dotted, family, last
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 3
_BASES = ("Sampler", "DistributedSampler")
_ROUND_SIZE = 8  # processes of one machine, and what most other numbers of them divide
_SIZE = lazy(r"^(n|num|total)_\w*(samples|images|data|items|videos)$|^(n|num)_(test|val|eval)\w*$")
_LARGE = 1000
_DROPPING = (b"drop_last: true", b"drop_last: True", b'drop_last": true', b"drop_last = true")
_OF_TRAINING = "a test above it lets the training alone come here, and a call makes a loader for something else"
_RANKS = lazy(r"world|num_tasks|replicas|n_?gpus?|num_gpus|rank|process")


def counts_twice(project: Project, loader: Loader, sampler: Origin, passed: Passed = frozenset()) -> bool:
    """True for torch's own sampler where it repeats samples, as far as the source shows it, and the loader keeps them.

    So is a class of the project that is written as torch's own is. passed: the expressions on the ways from the loop to the
    loader: what a function that makes it is told there (`drop_last=drop_last`) holds.
    """
    if not (is_distributed_sampler(project, sampler) or repeats_by_hand(project, sampler)):
        return False
    if not isinstance(sampler.node, ast.Call) or _drops_rest(project, loader, passed):
        return False
    if is_of_training_alone(project, sampler) and left(sampler.module, sampler.node, _OF_TRAINING):
        return False
    known = _fits(project, sampler) or _trains_with(project, sampler) or _asks_for_rest(sampler) or _divides(sampler)
    return _pads(project, sampler.module, sampler.node, passed) and not known


def repeats_by_hand(project: Project, sampler: Origin) -> bool:
    """True for a Sampler of the project that puts `rows += rows[: (self.total_size - len(rows))]` to its rows in each pass.

    It may do so under an option that is on, and where there are too few. So may one that derives from torch's own
    DistributedSampler, and writes its pass anew.
    """
    facts = made_facts(project, sampler)
    if facts is None or not any(last(n) in _BASES and family(n) == "torch" for n in facts.external):
        return False
    own = facts.method("__iter__")
    if own is None or len(facts.lineage) > 1:
        return False
    return any(_is_own_start(s) for s in _run_in_each_pass(own[1].body, _said(sampler, facts)))


def _run_in_each_pass(body: list[ast.stmt], said: frozenset[str]) -> Iterator[ast.AugAssign]:
    """The `rows += …` of a pass: also under a test of how many rows there are, and under an option that is on."""
    for statement in body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            yield statement
        elif isinstance(statement, ast.If) and (_compares_lengths(statement.test) or dotted(statement.test) in said):
            yield from _run_in_each_pass(statement.body, said)


def _compares_lengths(test: ast.expr) -> bool:
    """True for `len(rows) < self.total_size`: where it does not hold, there is nothing to repeat."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(n, ast.Call) and dotted(n.func) == "len" for side in sides for n in walk(side))


def _said(sampler: Origin, facts: ClassFacts) -> frozenset[str]:
    """The fields that the constructor gives an option as it is, which is on by default and not given by the call."""
    made = facts.method("__init__")
    if made is None or not isinstance(sampler.node, ast.Call) or any(k.arg is None for k in sampler.node.keywords):
        return frozenset()
    parameters = made[1].args.args
    defaults = zip(reversed(parameters), reversed(made[1].args.defaults), strict=False)
    on = {p.arg for p, d in defaults if isinstance(d, ast.Constant) and d.value is True}
    given = {k.arg for k in sampler.node.keywords} | {p.arg for p in parameters[1 : len(sampler.node.args) + 1]}
    stored = [n for n in walk_scope(made[1]) if isinstance(n, ast.Assign) and len(n.targets) == 1]
    fields = {dotted(n.targets[0]) for n in stored if isinstance(n.value, ast.Name) and n.value.id in on - given}
    return frozenset(fields - {dotted(n.targets[0]) for n in stored if not isinstance(n.value, ast.Name)} - {""})


def _is_own_start(adds: ast.AugAssign) -> bool:
    """True for `rows += rows[: total - len(rows)]`."""
    piece, name = adds.value, dotted(adds.target)
    if not name or not isinstance(piece, ast.Subscript) or dotted(piece.value) != name or not isinstance(piece.slice, ast.Slice):
        return False
    more = piece.slice.upper
    if piece.slice.lower is not None or not isinstance(more, ast.BinOp) or not isinstance(more.op, ast.Sub):
        return False
    length = more.right
    return isinstance(length, ast.Call) and dotted(length.func) == "len" and [dotted(a) for a in length.args] == [name]


def keeps_order(sampler: Origin) -> bool:
    """True for `shuffle=False`: nobody trains with such a sampler."""
    given = next((k.value for k in getattr(sampler.node, "keywords", ()) if k.arg == "shuffle"), None)
    return isinstance(given, ast.Constant) and given.value is False


def _pads(project: Project, module: SourceModule, call: ast.Call, passed: Passed) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "drop_last"), call.args[5] if len(call.args) > 5 else None)
    if any(k.arg is None or (k.arg == "even_divisible" and not is_true(k.value)) for k in call.keywords):
        return False  # MONAI's sampler repeats nothing where that is False
    told = told_by_calls(project, module, given, passed) if given is not None else None
    return given is None or (isinstance(given, ast.Constant) and not given.value) or (told is not None and may_be_off(told))


def _drops_rest(project: Project, loader: Loader, passed: Passed) -> bool:
    """True for a loader that leaves its last batch out: there the repeated samples stand, but where the share divides."""
    given = loader.argument("drop_last", 8)
    if loader.hides and given is None:  # `**config["loader"]`
        return any(project.files_containing(word, kinds=(".yaml", ".yml", ".json", ".toml")) for word in _DROPPING)
    size = loader.argument("batch_size", 1)
    if (size is None and not loader.hides) or (isinstance(size, ast.Constant) and size.value == 1):
        return False  # each batch is full
    told = told_by_calls(project, loader.module, given, passed) if given is not None else None
    if told is not None:
        return not may_be_off(told)
    function = loader.module.function_of(loader.call)
    if isinstance(given, ast.Name) and function is not None:  # a parameter, by its default
        parameters = [*function.args.posonlyargs, *function.args.args]
        pairs = [*zip(reversed(parameters), reversed(function.args.defaults), strict=False)]
        pairs += [(p, d) for p, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is not None]
        given = next((d for p, d in pairs if p.arg == given.id), None)
    return isinstance(given, ast.Constant) and given.value is True


def _asks_for_rest(sampler: Origin) -> bool:
    """True where the function asks whether the data divide by the ranks: who wrote it knows of the padding, and says so."""
    function = sampler.module.function_of(sampler.node)
    tests = (n.test for n in walk_scope(function) if isinstance(n, (ast.If, ast.Assert))) if function is not None else ()
    parts = (n for test in tests for n in ast.walk(test) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod))
    return any("len(" in ast.unparse(n.left) and _RANKS.search(ast.unparse(n.right).lower()) for n in parts)


def _divides(sampler: Origin) -> bool:
    """True where the sizes that the function writes out for its data divide by eight: nothing is repeated then."""
    function = sampler.module.function_of(sampler.node)
    made = (n for n in walk_scope(function) if isinstance(n, ast.Assign)) if function is not None else ()
    sizes = [
        a.value.value
        for a in made
        if isinstance(a.value, ast.Constant) and isinstance(a.value.value, int) and _SIZE.search(last(dotted(a.targets[0])))
    ]
    return bool(sizes) and all(n >= _LARGE and n % _ROUND_SIZE == 0 for n in sizes)


def _fits(project: Project, sampler: Origin) -> bool:
    """True for data in memory, whose number of samples the program chooses."""
    assert isinstance(sampler.node, ast.Call)
    given = next((k.value for k in sampler.node.keywords if k.arg == "dataset"), next(iter(sampler.node.args), None))
    return given is not None and _in_memory(project, sampler.module, given, 0)


def _in_memory(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    for origin in origins(project, module, node) if depth < _DEPTH else ():
        name = last(dotted(origin.node.func)) if isinstance(origin.node, ast.Call) else ""
        if name == "TensorDataset":
            return True
        if name in ("random_split", "Subset") and isinstance(origin.node, ast.Call) and origin.node.args:
            return _in_memory(project, origin.module, origin.node.args[0], depth + 1)
    return False


def _trains_with(project: Project, sampler: Origin) -> bool:
    """True for a sampler that is told the epoch: that of the training, whose repeated samples change with it.

    One of the evaluation may be told it as well: where the loops that train are seen to go through others, it is none of theirs.
    """
    statement = sampler.module.statement_of(sampler.node)
    names = {dotted(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    told = (c.func for c in sampler.module.calls_named("set_epoch") if isinstance(c.func, ast.Attribute))
    if not any(dotted(func.value) in names for func in told):
        return False
    trained = trained_samplers(project, sampler.module.path)
    return not trained or any(o.node is sampler.node for o in trained)


def trained_samplers(project: Project, path: str) -> list[Origin]:
    """The samplers of the loaders that the training loops of a program go through; none where one of them is not seen."""
    found: list[Origin] = []
    for one in training_passes(project, path):
        loaders = [loader_of(o) for o in origins(project, one.module, one.source)]
        samplers = [s for loader in loaders if loader is not None for s in samplers_of(project, loader)]
        if None in loaders or not any(is_distributed_sampler(project, s) for s in samplers):
            return []
        found += samplers
    return found
