"""Loaders and samplers as they are made: which data a DataLoader goes through, and what decides over its order."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.bindings import bindings_in, only_value
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.origins import Origin, made_class, made_facts, origins
from codemods.analysis.loading.written_options import written_options
from codemods.analysis.model.literal_arguments import UNTOLD, literal_of
from codemods.analysis.model.signatures import bind, defaults
from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_NONE = "None"
# Loaders that derive from torch's, and take its keywords.
_LOADERS = ("torch.utils.data.", "torch_geometric.loader.", "torch_geometric.data.", "monai.data.")


@record
class Loader:
    """A `DataLoader(...)` of torch. sampler and batch_sampler: as they are given, None where they are not."""

    module: SourceModule
    call: ast.Call

    def argument(self, name: str, index: int) -> ast.expr | None:
        given = next((k.value for k in self.call.keywords if k.arg == name), None)
        if given is None and len(self.call.args) > index and not any(isinstance(a, ast.Starred) for a in self.call.args):
            given = self.call.args[index]
        if given is None:
            given = (written_options(self.module, self.call) or {}).get(name)
        return None if isinstance(given, ast.Constant) and given.value is None else given

    @property
    def dataset(self) -> ast.expr | None:
        return self.argument("dataset", 0)

    @property
    def sampler(self) -> ast.expr | None:
        return self.argument("sampler", 3)

    @property
    def batch_sampler(self) -> ast.expr | None:
        return self.argument("batch_sampler", 4)

    @property
    def is_given_options(self) -> bool:
        """True for `DataLoader(data, **options)`."""
        return any(k.arg is None for k in self.call.keywords)

    @property
    def hides(self) -> bool:
        """True where `**options` may hold a sampler that is not seen."""
        return any(isinstance(a, ast.Starred) for a in self.call.args) or written_options(self.module, self.call) is None

    @property
    def hides_its_sampler(self) -> bool:
        """As `hides`, where none is written out: beside one that is, Python and torch refuse another."""
        return self.hides and self.sampler is None and self.batch_sampler is None


def loader_of(origin: Origin) -> Loader | None:
    """The loader of torch that an origin makes; None for anything else, other packages' loaders included."""
    if not origin.known or origin.path or not isinstance(origin.node, ast.Call):
        return None
    return Loader(origin.module, origin.node) if is_loader(origin.module, origin.node) else None


def is_loader(module: SourceModule, call: ast.Call) -> bool:
    return is_torch_loader(qualified(module, call.func))


def is_torch_loader(name: str) -> bool:
    return last(name) == "DataLoader" and name.startswith(_LOADERS)


def made_loader(project: Project, origin: Origin) -> Loader | None:
    """As `loader_of`, and an object of a project class that derives from torch's loader and hands all arguments on to it."""
    if (loader := loader_of(origin)) is not None:
        return loader
    facts = made_facts(project, origin)
    if facts is None or not isinstance(origin.node, ast.Call):
        return None
    if facts.unresolved or not any(is_torch_loader(name) for name in facts.external):
        return None
    made = facts.method("__init__")
    if facts.method("sampler") is not None or (made is not None and not _hands_all_on(made[1])):
        return None
    return Loader(origin.module, origin.node)


def _hands_all_on(init: FunctionNode) -> bool:
    """True for `def __init__(self, *args, **kwargs)` that calls its base with both, and leaves the loader its sampler."""
    spec = init.args
    if len(spec.args) != 1 or spec.vararg is None or spec.kwarg is None or spec.kwonlyargs:
        return False
    if any(isinstance(s, ast.Assign) and any(dotted(t) == "self.sampler" for t in s.targets) for s in init.body):
        return False
    rows, options = spec.vararg.arg, spec.kwarg.arg
    for call in (n for n in walk(init) if isinstance(n, ast.Call)):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "__init__":
            continue
        starred = {dotted(a.value) for a in call.args if isinstance(a, ast.Starred)}
        if rows in starred and options in {dotted(k.value) for k in call.keywords if k.arg is None}:
            return True
    return False


def is_none(origin: Origin) -> bool:
    return origin.known and not origin.path and isinstance(origin.node, ast.Constant) and origin.node.value is None


def is_distributed_sampler(project: Project, origin: Origin) -> bool:
    """True for torch's own DistributedSampler, and for MONAI's, which derives from it: its places are others, so it may only be
    given the data set by place.
    """
    if not origin.known or origin.path or not isinstance(origin.node, ast.Call):
        return False
    name = qualified(origin.module, origin.node.func)
    if last(name) != "DistributedSampler":
        return False
    return family(name) == "torch" or (name.startswith("monai.data.") and len(origin.node.args) < 2)


def is_epoch_heir(project: Project, origin: Origin) -> bool:
    """True for a class of the project that derives from DistributedSampler and draws its order by the epoch."""
    facts = made_facts(project, origin)
    if facts is None or not any(last(n) == "DistributedSampler" for n in facts.external) or facts.method("set_epoch") is not None:
        return False
    own = facts.method("__iter__")
    if own is None:
        return True
    reads = {dotted(n) for n in walk(own[1]) if isinstance(n, ast.Attribute)}
    return "self.epoch" in reads


def heir_shuffles(project: Project, origin: Origin) -> bool | None:
    """As `shuffles`, for such a class: what its own `__init__` gives where the call says nothing."""
    facts = made_facts(project, origin)
    made = facts.method("__init__") if facts is not None else None
    if made is None or not isinstance(origin.node, ast.Call):
        return shuffles(origin)
    given = bind(made[1], origin.node, bound=True)
    if given is None:
        return None
    spec = made[1].args
    names = [a.arg for a in spec.args]
    defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
    value = given.get("shuffle", defaults.get("shuffle"))
    if value is None:
        return True if "shuffle" not in names else None
    return bool(value.value) if isinstance(value, ast.Constant) else None


def shuffles(origin: Origin) -> bool | None:
    """Whether a DistributedSampler shuffles: True unless it says otherwise, None where that is a matter of settings."""
    call = origin.node
    if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords):
        return None
    given = next((k.value for k in call.keywords if k.arg == "shuffle"), call.args[3] if len(call.args) > 3 else None)
    if given is None:
        return True
    return bool(given.value) if isinstance(given, ast.Constant) else None


def shuffles_by_callers(project: Project, origin: Origin, loader: Loader | None = None) -> bool | None:
    """As `shuffles`, with the callers asked where the call hands a parameter on: None where they do not agree.

    The loader's own call of the helper (`sampler=sampler_of(data, shuffle=True)`, or a name that is bound to it) is asked alone.
    """
    given = _keyword(origin.node, "shuffle")
    if not isinstance(given, ast.Name):
        return shuffles(origin)
    helper = _made_by(loader) if loader is not None else None
    if loader is not None and helper is not None and helper is not origin.node:
        called = called_function(project, loader.module, helper)
        if called is not None and called.node is origin.module.function_of(origin.node):
            if (said := shuffles_by_call(project, origin, loader.module, helper)) is not None:
                return said
    return _said(project, origin.module, given)


def shuffles_by_call(project: Project, origin: Origin, module: SourceModule, call: ast.Call) -> bool | None:
    """Whether a sampler that a function makes shuffles by what this call says; None where it hands nothing on.

    The call says it as such, or by a literal that the function asks about: `shuffle = split == "train"`.
    """
    given, function = _keyword(origin.node, "shuffle"), origin.module.function_of(origin.node)
    if given is None or function is None:
        return None
    method = isinstance(origin.module.parent(function), ast.ClassDef)
    if (bound := bind(function, call, bound=method)) is None:
        return None
    handed = {n: v for n, v in (defaults(function) | bound).items() if _is_handed_on(origin.module, function, n)}
    if isinstance(given, ast.Name) and given.id in handed:
        return _said(project, module, handed[given.id])
    said = literal_of(given, _with_locals(origin.module, given, handed))
    return None if said is UNTOLD else bool(said)


def _with_locals(module: SourceModule, node: ast.expr, known: Mapping[str, ast.expr], depth: int = 3) -> dict[str, ast.expr]:
    """`known`, with the names in an expression that its function gives one value, where that is told by these."""
    out = dict(known)
    for name in {n.id for n in walk(node) if isinstance(n, ast.Name)} - set(known) if depth else ():
        value = only_value(bindings_in(module, module.function_of(node), name))
        said = literal_of(value, _with_locals(module, value, known, depth - 1)) if value is not None else UNTOLD
        if isinstance(said, (bool, int, str)):
            out[name] = ast.Constant(said)
    return out


def _said(project: Project, module: SourceModule, given: ast.expr) -> bool | None:
    """True or False where every way to a value gives the same one of them."""
    made = origins(project, module, given)
    said = {bool(o.node.value) if o.known and isinstance(o.node, ast.Constant) and not o.path else None for o in made}
    return said.pop() if len(said) == 1 else None


def _made_by(loader: Loader) -> ast.Call | None:
    """The call that gives a loader's sampler: in its place, or bound to the one name that stands there."""
    node = loader.sampler
    if isinstance(node, ast.Name):
        node = only_value(bindings_in(loader.module, loader.module.function_of(node), node.id))
    return node if isinstance(node, ast.Call) else None


def _is_handed_on(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True for a parameter that the function gives no other value."""
    bound = bindings_in(module, function, name)
    return len(bound) == 1 and bound[0].parameter


def _keyword(node: ast.expr, name: str) -> ast.expr | None:
    return next((k.value for k in node.keywords if k.arg == name), None) if isinstance(node, ast.Call) else None


def shares_out(project: Project, origin: Origin) -> bool:
    """True for a sampler that may give each rank its own part: one with words of that, or that nothing is known of."""
    if not origin.known or not isinstance(origin.node, ast.Call):
        return not is_none(origin)
    name = qualified(origin.module, origin.node.func)
    if made_class(project, origin) is not None or family(name) != "torch":
        return True
    return last(name) not in ("RandomSampler", "SequentialSampler", "WeightedRandomSampler", "SubsetRandomSampler")


def samplers_of(project: Project, loader: Loader) -> tuple[Origin, ...]:
    """What may be the sampler of a loader; empty where it is given none. A batch sampler counts by the sampler it is given."""
    if (given := loader.sampler) is not None:
        return origins(project, loader.module, given)
    if (batches := loader.batch_sampler) is None:
        return ()
    out: list[Origin] = []
    for origin in origins(project, loader.module, batches):
        call = origin.node
        if (
            origin.known
            and isinstance(call, ast.Call)
            and qualified(origin.module, call.func).endswith(".BatchSampler")
            and call.args
        ):
            out += origins(project, origin.module, call.args[0])
        else:
            out += _inside(project, origin) or [origin]
    return tuple(out)


def _inside(project: Project, origin: Origin) -> list[Origin]:
    """The samplers that a project's own heir of torch's BatchSampler is given and hands to it, where one shares out."""
    facts = made_facts(project, origin)
    if facts is None or not isinstance(origin.node, ast.Call) or facts.method("set_epoch") is not None:
        return []
    if not any(last(n) == "BatchSampler" and family(n) == "torch" for n in facts.external):
        return []
    made = facts.method("__init__")
    name = "sampler" if made is None else _handed_on(made[1])
    given = bind(made[1], origin.node, bound=True) if made is not None else _plain(origin.node)
    if given is None or name not in given:
        return []
    found = origins(project, origin.module, given[name])
    return list(found) if any(is_distributed_sampler(project, o) for o in found) else []


def _plain(call: ast.Call) -> dict[str, ast.expr]:
    return {**({"sampler": call.args[0]} if call.args else {}), **{k.arg: k.value for k in call.keywords if k.arg}}


def _handed_on(made: FunctionNode) -> str:
    """The parameter that a constructor gives to that of the base as its sampler; "" for none."""
    for call in (n for n in walk(made) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" and "super" in ast.unparse(call.func.value):
            given = _plain(call).get("sampler")
            return given.id if isinstance(given, ast.Name) else ""
    return ""


def is_map_style(project: Project, origin: Origin) -> bool | None:
    """False for a data set of the project that is gone through as a stream; None where the class is not seen."""
    facts = made_facts(project, origin)
    if facts is None:
        return None
    return not any(last(n) == "IterableDataset" for n in facts.external) and facts.method("__getitem__") is not None


def short(module: SourceModule, node: ast.AST) -> str:
    text = " ".join(module.text_of(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
