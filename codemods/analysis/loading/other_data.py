"""Loaders whose DistributedSampler was made over another data set than they read: its indices are those of the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in, bindings_of, name_or_field_bindings, only_value
from codemods.analysis.loading.origins import Origin, origins
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, is_epoch_heir, is_loader, samplers_of
from codemods.analysis.loading.shuffle_beside import may_meet
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_WORDS = lazy(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PARTS = {
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "dev": "val", "test": "test", "testing": "test", "eval": "eval",
    "evaluation": "eval",
}  # fmt: skip
# Two data sets of the same rows may differ by what they make of a row.
_OF_A_ROW = lazy(r"(?i)transform|aug|collat|process|token")
_DEPTH = 4


@record
class OtherData:
    """loader reads `data`; sampler, which is given as `given`, deals out `dealt`. own: no other loader is given it."""

    loader: Loader
    given: ast.expr
    data: ast.expr
    sampler: Origin
    dealt: ast.expr
    own: bool


def samplers_of_other_data(project: Project, module: SourceModule) -> Iterator[OtherData]:
    for call in module.calls_named("DataLoader"):
        loader = Loader(module, call)
        data = loader.dataset
        given = loader.sampler or loader.batch_sampler
        if data is None or not part_of(data) or not is_loader(module, call):
            continue
        given = given or _in_options(module, call)
        if given is None or not _is_plain(given):
            continue
        made = samplers_of(project, loader) if loader.sampler or loader.batch_sampler else origins(project, module, given)
        shared = [o for o in made if is_distributed_sampler(project, o) or is_epoch_heir(project, o)]
        dealt = [(o, d) for o in shared if (d := _dealt(o)) is not None]
        if not shared or len(dealt) < len(shared) or not all(_is_here(loader, o) and may_meet(loader, given, o) for o in shared):
            continue
        if all(_are_apart(project, module, data, d) for _, d in dealt):
            sampler, other = dealt[0]
            yield OtherData(loader, given, data, sampler, other, len(dealt) == 1 and _is_its_own(module, given, sampler))


def _is_plain(given: ast.expr) -> bool:
    """False where a test in the place of the sampler decides over what a name stands for."""
    return not isinstance(given, (ast.IfExp, ast.BoolOp)) or any(isinstance(n, ast.Call) for n in ast.iter_child_nodes(given))


def _in_options(module: SourceModule, call: ast.Call) -> ast.expr | None:
    """The sampler in a dictionary written out in the same function: `DataLoader(data, **options)`."""
    for name in (k.value for k in call.keywords if k.arg is None and isinstance(k.value, ast.Name)):
        options = only_value(bindings_of(module, name))
        if not isinstance(options, ast.Dict):
            continue
        pairs = zip(options.keys, options.values, strict=True)
        named = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "sampler"]
        if len(named) == 1:
            return named[0]
    return None


def _dealt(sampler: Origin) -> ast.expr | None:
    call = sampler.node
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "dataset"), None)


def _is_here(loader: Loader, sampler: Origin) -> bool:
    """True where one function makes both, or two methods of one class."""
    module = loader.module
    if sampler.module is not module:
        return False
    if module.function_of(loader.call) is module.function_of(sampler.node):
        return True
    owner = module.class_of(loader.call)
    return owner is not None and owner is module.class_of(sampler.node)


def part_of(data: ast.expr) -> str:
    """`train` for `self.train_set`, `sets["train"]`: the part of the data that the last name speaks of; "" for none, or two."""
    name = dotted(data).rpartition(".")[2]
    if isinstance(data, ast.Subscript) and isinstance(data.slice, ast.Constant) and isinstance(data.slice.value, str):
        name = data.slice.value
    found = {_PARTS[w.lower()] for w in _WORDS.findall(name) if w.lower() in _PARTS}
    return found.pop() if len(found) == 1 else ""


def _are_apart(project: Project, module: SourceModule, data: ast.expr, dealt: ast.expr) -> bool:
    """True for two data sets of two parts (train and test), of which neither is made of the other, or of the same rows."""
    parts = {part_of(data), part_of(dealt)}
    if len(parts) < 2 or "" in parts or ("eval" in parts and "train" not in parts):
        return False
    if _is_made_of(module, data, dotted(dealt)) or _is_made_of(module, dealt, dotted(data)):
        return False
    one, other = origins(project, module, data), origins(project, module, dealt)
    return not {_rows(o) for o in one} & {_rows(o) for o in other}


def _rows(origin: Origin) -> str:
    """What decides over the rows of a data set, as text: its call, without what is made of a row."""
    node = origin.node
    if not isinstance(node, ast.Call):
        return f"{origin.module.path} {ast.unparse(node)} {origin.path}"
    given = [ast.unparse(a) for a in node.args if not _OF_A_ROW.search(ast.unparse(a))]
    named = sorted(f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords)
    kept = [text for text in named if not _OF_A_ROW.search(text)]
    return f"{ast.unparse(node.func)} {given} {kept} {origin.path}"


def _is_made_of(module: SourceModule, data: ast.expr, other: str, depth: int = 0) -> bool:
    """True where the other one stands in what is bound to the name."""
    if not other or depth > _DEPTH:
        return True
    for bound in name_or_field_bindings(module, data):
        value = bound.value
        if value is None or _splits(value):
            continue
        if any(dotted(n) == other for n in walk(value)):
            return True
        names = [n for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) != dotted(data)]
        if any(part_of(n) and _is_made_of(module, n, other, depth + 1) for n in names):
            return True
    return False


def _splits(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and "split" in dotted(value.func)


def _is_its_own(module: SourceModule, given: ast.expr, sampler: Origin) -> bool:
    """True where the sampler has a name that stands at this loader alone."""
    function = module.function_of(given)
    if not isinstance(given, ast.Name) or function is None or module.function_of(sampler.node) is not function:
        return False
    reads = [n for n in walk(function) if isinstance(n, ast.Name) and n.id == given.id and isinstance(n.ctx, ast.Load)]
    values = [b for b in bindings_in(module, function, given.id) if b.value is sampler.node]
    return len(values) == 1 and all(n is given or _tells(module, n) for n in reads)


def _tells(module: SourceModule, name: ast.Name) -> bool:
    """`sampler.set_epoch(epoch)`, `sampler is None`: the sampler is not handed on."""
    up = module.parent(name)
    return isinstance(up, (ast.Attribute, ast.Compare, ast.If, ast.IfExp))
