"""Files of which each rank writes one, and the loop that reads all of them: is it the same series of files?

`f"{out}/part_{rank}.json"` and, in `for i in range(world_size)`, `f"{out}/part_{i}.json"` differ in one name: the rank on the one
side, what the loop counts on the other.
"""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterable, Iterator

from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_TOKEN = lazy(r"<[PNSIGE]:([^<>]*)>")
_OF_A_RANK = lazy(r"(?:^|\W|_)(?:\w*rank\w*|process_index)(?:$|\W)")
_WILD = lazy(r"[*?]|\[")
_LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_READS = frozenset({Act.READS, Act.LOADS})


def counted_round(module: SourceModule, node: ast.AST, until: ast.AST | None) -> frozenset[str]:
    """The names that loops and comprehensions round a node give their items, up to `until`."""
    found: set[str] = set()
    below = node
    for up in module.ancestors(node):
        if up is until:
            break
        for target in _targets(up, below):
            found |= {n.id for n in walk(target) if isinstance(n, ast.Name)}
        below = up
    return frozenset(found)


def _targets(loop: ast.AST, below: ast.AST) -> Iterator[ast.expr]:
    if isinstance(loop, (ast.For, ast.AsyncFor)) and below is not loop.iter:
        yield loop.target
    elif isinstance(loop, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        yield from (g.target for g in loop.generators if g is not below)


def is_one_of_a_loop(module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where all names of a path that speak of a rank are those of a loop round the call: `for rank in range(world_size)`."""
    named = {n.id for n in walk(path) if isinstance(n, ast.Name) and _OF_A_RANK.search(n.id)}
    of_calls = any(isinstance(n, ast.Attribute) and _OF_A_RANK.search(n.attr) for n in walk(path))
    return bool(named) and not of_calls and named <= counted_round(module, call, module.function_of(call))


def same_series(written: str, read: str, counted: Iterable[str], own: Iterable[str] = ()) -> bool:
    """True for two paths that are alike but for the rank in the one and what a loop counts in the other.

    own: names that stand for the rank's own samples, where the rank itself is not in the path.
    """
    ours, theirs = _TOKEN.findall(written), _TOKEN.findall(read)
    if _TOKEN.sub("<>", written) != _TOKEN.sub("<>", read) or len(ours) != len(theirs):
        return False
    counted, own, apart = set(counted), set(own), 0
    for mine, other in zip(ours, theirs, strict=True):
        if _is_counted(other, counted) and (_OF_A_RANK.search(mine) or _names(mine) & own):
            apart += 1
        elif mine != other:
            return False
    return apart > 0


def listed_with(written: str, listed: str) -> bool:
    """True where `glob(f"{out}/part_*.json")` finds the files of all ranks."""
    folder, _, name = written.rpartition("/")
    head, _, pattern = listed.rpartition("/")
    if not _WILD.search(pattern) or not _OF_A_RANK.search(name) or not folder or folder != head or _TOKEN.search(pattern):
        return False
    return fnmatch.fnmatchcase(_TOKEN.sub("0", name), pattern) and pattern.strip("*") != ""


def lies_in(written: str, folder: str, own: Iterable[str]) -> bool:
    """True where the files of all ranks lie in a folder: their names hold the rank, or its own samples."""
    if not written.startswith(f"{folder}/"):
        return False
    words, own = _TOKEN.findall(written[len(folder) :]), set(own)
    return any(_OF_A_RANK.search(word) or _names(word) & own for word in words)


def _is_counted(word: str, counted: set[str]) -> bool:
    return bool(_names(word) & counted)


def _names(word: str) -> set[str]:
    """The names in what stands for an expression; what a callee calls it is behind the callee's own name."""
    return {n.id for n in _parsed(word.rpartition("|")[2]) if isinstance(n, ast.Name)}


def _parsed(text: str) -> Iterator[ast.AST]:
    try:
        return walk(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError):
        return iter(())


def reads_what_it_lists(module: SourceModule, listing: ast.Call) -> bool:
    """True where files are opened under names that a loop takes from a listing: `for part in glob(…): rows += load(part)`."""
    loops = [n for n in module.ancestors(listing) if isinstance(n, _LOOPS)]
    statement = module.statement_of(listing)
    name = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if isinstance(name, ast.Name):
        scope = module.function_of(listing) or module.tree
        loops += [n for n in walk(scope) if isinstance(n, _LOOPS) and any(dotted(x) == name.id for x in _gone_through(n))]
    for loop in loops:
        targets = {n.id for t in _targets(loop, listing) for n in walk(t) if isinstance(n, ast.Name)}
        for call in (n for n in walk(loop) if isinstance(n, ast.Call)):
            touched = file_call(module, call)
            if touched is not None and touched.act in _READS and targets & {
                n.id for n in walk(touched.path) if isinstance(n, ast.Name)
            }:
                return True
    return False


def _gone_through(loop: ast.AST) -> Iterator[ast.expr]:
    """What a loop goes through, without `sorted` round it."""
    found = [loop.iter] if isinstance(loop, (ast.For, ast.AsyncFor)) else [g.iter for g in getattr(loop, "generators", ())]
    for items in found:
        while isinstance(items, ast.Call) and items.args and last(dotted(items.func)) in ("sorted", "list", "tqdm", "enumerate"):
            items = items.args[0]
        yield items
