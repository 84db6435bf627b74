"""Streams that nothing shares out: each rank reads all of them, unless what hands them to the ranks does it.

A stream is an object of a project's own IterableDataset, or one of `datasets` (`load_dataset(streaming=True)`,
`to_iterable_dataset()`) with what is made of it. Whatever speaks of ranks on the way makes a share likely, and no stream of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, find_class
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.samplers import Loader, is_none
from codemods.analysis.loading.shares import code_of, speaks_of_ranks
from codemods.analysis.loading.worker_branches import lone_reader
from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import FunctionNode, SourceModule, called_name, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

# By whole words of a name: a `RankSample` is no rank.
WORDS = lazy(
    r"(?<![A-Za-z])(?:rank|ranks)(?![A-Za-z])|[a-z]Rank(?![a-z])|RANK|world_?size|WorldSize|Distributed|num_replicas|process_index"
    r"|num_processes|process_count|node_?id|LOCAL_|split_by|shard|Shard|nodesplitter|resampl|current_device|device_id|gpu_id"
    r"|(?<![A-Za-z])dist(?![A-Za-z])|(?<![A-Za-z])(?:hvd|xm)(?![A-Za-z])|partition"
)
_PACKAGES = frozenset({"torch", "abc", "typing", "collections", "Generic", "object"})
_KEEPS = frozenset(
    {"map", "filter", "shuffle", "with_format", "set_format", "take", "skip", "batch", "cast", "cast_column", "select_columns",
     "remove_columns", "rename_column", "rename_columns", "repeat"}
)  # fmt: skip
_ORDERS = frozenset({"shuffle", "permutation", "randperm"})  # all of it, in another order
_ENDLESS = frozenset({"cycle", "count", "repeat"})
_RANDOM = ("random.", "numpy.random.", "torch.rand")
_DEPTH = 4


@record
class Stream:
    """name: as it is called. place: its `__iter__`, or the call that makes it. lone: the branch that reads all of it without
    workers, where those of several workers share by rank. workers: the workers share it, and the ranks do not.
    """

    name: str
    module: SourceModule
    place: ast.AST
    lone: ast.If | None = None
    workers: bool = False


def streams_of(project: Project, loader: Loader) -> tuple[Stream, ...]:
    """What a loader reads, where all of it is streams that give no rank a part; empty otherwise."""
    if loader.hides or loader.dataset is None or loader.argument("worker_init_fn", 99) is not None:
        return ()
    made = [o for o in origins(project, loader.module, loader.dataset) if not is_none(o)]
    found = [_stream(project, o, 0) for o in made]
    known = [s for s in found if s is not None]
    return tuple(known) if known and len(known) == len(found) else ()


def _stream(project: Project, origin: Origin, depth: int) -> Stream | None:
    call = origin.node
    if not origin.known or origin.path or not isinstance(call, ast.Call) or depth > _DEPTH:
        return None
    site = made_class(project, origin)
    if site is not None:
        return _own(project, site, origin, call, depth)
    return _of_datasets(project, origin, call, depth)


def _speaks(project: Project, module: SourceModule, node: ast.expr) -> bool:
    return speaks_of_ranks(project, module, node, fields=True)


# Those of `datasets`


def _of_datasets(project: Project, origin: Origin, call: ast.Call, depth: int) -> Stream | None:
    module = origin.module
    name = called_name(call)
    if _splits_anywhere(project):
        return None
    if name == "load_dataset" and family(qualified(module, call.func)) == "datasets":
        streaming = next((k.value for k in call.keywords if k.arg == "streaming"), None)
        if not isinstance(streaming, ast.Constant) or streaming.value is not True or _speaks(project, module, call):
            return None
        return Stream("load_dataset(streaming=True)", module, call)
    if not isinstance(call.func, ast.Attribute):
        return None
    if name == "to_iterable_dataset":
        if not _works_with_datasets(module) or _source_speaks(project, module, call.func.value):
            return None
        return Stream("to_iterable_dataset()", module, call)
    if name not in _KEEPS or any(WORDS.search(code_of(module, a)) for a in call.args):
        return None
    made = origins(project, module, call.func.value)
    found = [s for o in made if (s := _stream(project, o, depth + 1)) is not None]
    if len(found) != 1:
        return None
    rows = found[0].place.func if isinstance(found[0].place, ast.Call) else None  # `rows = rows.to_iterable_dataset()`
    read = {id(o.node) for o in origins(project, found[0].module, rows.value)} if isinstance(rows, ast.Attribute) else set()
    return found[0] if len([o for o in made if id(o.node) not in read]) == 1 else None


def _source_speaks(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True where what the rows are read from speaks of ranks; `num_shards=` of the stream itself is for its workers."""
    for origin in origins(project, module, node):
        made = origin.node
        given = [*made.args, *(k.value for k in made.keywords)] if isinstance(made, ast.Call) else []
        if any(_speaks(project, origin.module, a) for a in given):
            return True
    return False


def _works_with_datasets(module: SourceModule) -> bool:
    return any(m.partition(".")[0] == "datasets" for m in module.imported_modules)


def _splits_anywhere(project: Project) -> bool:
    words = (b"split_dataset_by_node", b"split_by_node", b"nodesplitter")
    return any(project.files_containing(word) for word in words)


# A class of the project


def _own(project: Project, site: ClassSite, origin: Origin, call: ast.Call, depth: int) -> Stream | None:
    facts = class_facts(project, site.module, site.node)
    found = _of_class(project, site, facts)
    if found is None or _speaks(project, origin.module, call):
        return None
    for given in (*call.args, *(k.value for k in call.keywords)):
        for made in (o for part in _parts(origin.module, given) for o in origins(project, origin.module, part)):
            inner = made_class(project, made)
            if inner is None:
                if _splits_anywhere(project) or _is_made_of_shares(project, made, depth + 1):
                    return None
                continue
            if not _is_stream_class(class_facts(project, inner.module, inner.node)):
                if WORDS.search(_code_of_class(class_facts(project, inner.module, inner.node))):
                    return None
                continue
            below = _stream(project, made, depth + 1)
            if below is None:
                return None
            found = below
    return found


def _is_made_of_shares(project: Project, made: Origin, depth: int) -> bool:
    """True where a call of what is not known takes what gives each rank its part: `self.reader(Shares(files))`."""
    call = made.node
    if not isinstance(call, ast.Call) or depth > _DEPTH:
        return False
    for given in (*call.args, *(k.value for k in call.keywords)):
        for inner in (o for part in _parts(made.module, given) for o in origins(project, made.module, part)):
            site = made_class(project, inner)
            if site is None:
                if _is_made_of_shares(project, inner, depth + 1):
                    return True
            elif WORDS.search(_code_of_class(class_facts(project, site.module, site.node))):
                return True
    return False


def _parts(module: SourceModule, node: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
    """The elements of what may be a list: written out, made by a comprehension, or added to it; else the node itself."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _parts(module, element, depth + 1)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield node.elt
    else:
        yield node
        name = dotted(node)
        for call in module.calls_named("append", "extend", "insert") if name and depth < _DEPTH else ():
            if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name:
                yield from (p for a in call.args for p in _parts(module, a, depth + 1))


def _of_class(project: Project, site: ClassSite, facts: ClassFacts) -> Stream | None:
    return project.memo(("stream of class", site.module.path, site.node.lineno), lambda: _judged(project, site, facts))


def _is_stream_class(facts: ClassFacts) -> bool:
    return any(last(n) == "IterableDataset" and family(n) == "torch" for n in facts.external)


def _judged(project: Project, site: ClassSite, facts: ClassFacts) -> Stream | None:
    reads = facts.method("__iter__")
    if not _is_stream_class(facts) or facts.unresolved or reads is None:
        return None
    if any(family(n) not in _PACKAGES for n in facts.external) or _is_drawn(facts, reads):
        return None
    found = Stream(site.name, reads[0].module, reads[1], workers=b"get_worker_info" in _bytes(reads))
    if not WORDS.search(_code_of_class(facts)):
        return None if any(WORDS.search(t) for t in _called_code(project, facts)) else found
    lone = lone_reader(reads[0].module, reads[1], WORDS)
    if lone is None or any(WORDS.search(code_of(s.module, m)) for s, m in _others(facts, reads[1])):
        return None
    return replace(found, lone=lone)


def _bytes(reads: tuple[ClassSite, FunctionNode]) -> bytes:
    return reads[0].module.text_of(reads[1]).encode()


def _code_of_class(facts: ClassFacts) -> str:
    return " ".join(code_of(s.module, s.node) for s in facts.lineage)


def _others(facts: ClassFacts, reads: FunctionNode) -> Iterator[tuple[ClassSite, ast.AST]]:
    """The methods of a class that run when it is gone through or made, but for `__iter__` itself."""
    for site in facts.lineage:
        for method in site.methods().values():
            if method is not reads and method.name not in ("__len__", "set_epoch"):
                yield site, method


def _called_code(project: Project, facts: ClassFacts) -> Iterator[str]:
    """The code of the project's functions and classes that the class calls, and of those that they call."""
    todo: list[tuple[SourceModule, ast.AST, int]] = [(s.module, s.node, 0) for s in facts.lineage]
    seen: set[int] = set()
    while todo:
        module, top, depth = todo.pop()
        for call in (n for n in walk(top) if isinstance(n, ast.Call)):
            called = called_function(project, module, call)
            site = find_class(project, module, dotted(call.func)) if called is None and dotted(call.func) else None
            there = (called.module, called.node) if called is not None else (site.module, site.node) if site is not None else None
            if there is None or id(there[1]) in seen:
                continue
            seen.add(id(there[1]))
            yield code_of(*there)
            if depth < 2:
                todo.append((*there, depth + 1))


def _is_drawn(facts: ClassFacts, reads: tuple[ClassSite, FunctionNode]) -> bool:
    """True for a stream of samples that are drawn: without an end at random, or from nothing that is gone through."""
    drawn = [n for s in facts.lineage for n in walk(s.node) if isinstance(n, ast.Call) and _draws(s.module, n)]
    if any(isinstance(n, ast.Call) and _samples(n) for n in walk(reads[1])):
        return True
    if not drawn:
        return False
    inside = [n for s in facts.lineage for n in walk(s.node)]
    if any(isinstance(n, ast.While) and isinstance(n.test, ast.Constant) and n.test.value for n in inside):
        return True
    if any(isinstance(n, ast.Call) and last(dotted(n.func)) in _ENDLESS for n in inside):
        return True
    if all(last(dotted(n.func)) in _ORDERS for n in drawn):
        return False
    loops = [n for n in walk(reads[1]) if isinstance(n, ast.For)]
    return not any(dotted(n.iter) for n in loops)


def _samples(call: ast.Call) -> bool:
    """`self.buffer.sample(n)`: what a memory of experiences gives out is drawn from what this rank has played."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("sample", "choice", "choices")


def _draws(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    return name.startswith(_RANDOM) or bool(re.search(r"(^|[._])(rng|random_state|generator)\.", name))
