"""Networks that an optimizer trains beside a wrapped one, and that nobody wraps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassSite, Role, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.loading.origins import origins
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.analysis.wrapped.made_models import is_pretrained, is_wrapped_by_prepare
from codemods.analysis.wrapped.near_wraps import getters
from codemods.analysis.wrapped.network_flow import HANDS_BACK, flow_of
from codemods.analysis.wrapped.network_spots import Flow, Spot, shares
from codemods.analysis.wrapped.wraps import inner_of, is_prepare, is_wrap, without_moves
from codemods.data.torch_modules import PARAMETRISED
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 8  # networks inside of networks
# A network that meets the other ranks by itself, holds a part of the whole, or is switched off inside.
_OF_ITS_OWN = lazy(
    r"all_?reduce|all_gather|reduce_scatter|broadcast\(|world_size|get_rank|local_rank|requires_grad(?:_\(| = )False"
)


@record
class LeftOut:
    """A network that is trained and not wrapped. wrap: what wraps the other one, in `beside`; name: how this one is written."""

    name: str
    module: SourceModule
    made: ast.Call
    optimizer: ast.Call
    beside: SourceModule
    wrap: ast.Call
    wrapped: str


def networks_left_out(project: Project, module: SourceModule) -> Iterator[LeftOut]:
    """Each network of which the parameters go to an optimizer in this file, or to one that gets them from here."""
    seen: set[int] = set()
    for read in (*module.reads_of("parameters"), *module.reads_of("named_parameters")):
        holder = read.value if isinstance(read, ast.Attribute) else None
        if not isinstance(holder, (ast.Name, ast.Attribute)) or dotted(holder) == "self":
            continue
        for home, made in _made(project, module, holder):
            if id(made) in seen:
                continue
            seen.add(id(made))
            flow = flow_of(project, home, made)
            if flow.lost or not flow.run or flow.frozen or not _is_trained(flow) or _is_made_otherwise(project, flow):
                continue
            step = next((call for there, call in flow.steps if there is module), None)
            beside = _wrap_beside(project, flow, home, made) if step is not None else None
            if step is not None and beside is not None and not (beside[0] is module and are_other_arms(module, beside[1], step)):
                yield LeftOut(flow.name or dotted(holder), home, made, step, *beside)


def _is_trained(flow: Flow) -> bool:
    modules = [m for m, _ in flow.steps] + [s.module for s in flow.scopes]
    return bool(flow.steps) and any(m.holds(b"backward(") for m in modules) and any(m.calls_named("step") for m in modules)


def _made(project: Project, module: SourceModule, node: ast.expr) -> Iterator[tuple[SourceModule, ast.Call]]:
    """The calls that may make the network; what becomes of each is followed for itself."""
    for origin in origins(project, module, node):
        made = without_moves(origin.node)
        if origin.known and not origin.path and isinstance(made, ast.Call) and is_network(project, origin.module, made):
            yield origin.module, made


def is_network(project: Project, module: SourceModule, made: ast.Call) -> bool:
    """True for a call that makes a network with parameters, which works on each rank for itself."""
    name = qualified(module, made.func)
    if name.startswith("torch.nn.") and last(name)[:1].isupper() and not last(name).endswith("Parallel"):
        return any(isinstance(n, ast.Call) and last(dotted(n.func)) in PARAMETRISED for n in walk(made))
    if name.startswith("torchvision.models.") or is_pretrained(project, module, made):
        return True
    site = find_class(project, module, dotted(made.func)) if dotted(made.func) else None
    if site is None or not class_facts(project, site.module, site.node).is_a(Role.NN_MODULE):
        return False
    return _has_parameters(project, site, frozenset()) is not False and not _works_alone(project, site)


def _works_alone(project: Project, site: ClassSite) -> bool:
    facts = class_facts(project, site.module, site.node)
    return bool(facts.unresolved) or any(_OF_ITS_OWN.search(s.module.text_of(s.node)) for s in facts.lineage)


def _has_parameters(project: Project, site: ClassSite, seen: frozenset[int]) -> bool | None:
    """None where a part of the network is not seen."""
    known: bool | None = False
    for one in class_facts(project, site.module, site.node).lineage:
        for call in (n for n in walk(one.node) if isinstance(n, ast.Call)):
            end, full = last(dotted(call.func)), qualified(one.module, call.func)
            if end in PARAMETRISED or end in ("Parameter", "register_parameter") or full.startswith(("torchvision.", "timm.")):
                return True
            part = find_class(project, one.module, dotted(call.func)) if end[:1].isupper() else None
            if part is not None and id(part.node) not in seen and len(seen) < _DEPTH:
                inner = _has_parameters(project, part, seen | {id(site.node)})
                if inner:
                    return True
                known = None if inner is None else known
            elif part is None and isinstance(one.module.parent(call), ast.Assign) and not full.startswith("torch."):
                known = None
    return known


def _is_made_otherwise(project: Project, flow: Flow) -> bool:
    """True where a place that holds the network may hold something that is not seen, a wrapper perhaps."""
    return any(not _is_seen(project, m, v) for s in flow.scopes if not s.parameters for m, v in _values(project, s))


def _values(project: Project, spot: Spot) -> Iterator[tuple[SourceModule, ast.expr | None]]:
    if isinstance(spot.owner, ast.ClassDef):
        given = class_values(project, class_facts(project, spot.module, spot.owner)).given.get(spot.name, ())
        yield from ((g.site.module, g.value) for g in given)
    else:
        bound = bindings_in(spot.module, spot.owner, spot.name)
        yield from ((spot.module, b.value) for b in bound if not b.parameter)


def _is_seen(project: Project, module: SourceModule, value: ast.expr | None) -> bool:
    """True for a network that is made there, None, and what only names or moves what another place holds."""
    node = without_moves(value) if value is not None else None
    if isinstance(node, ast.Call) and last(dotted(node.func)) in HANDS_BACK and node.args:
        node = without_moves(node.args[0])
    if isinstance(node, ast.Call):
        site = None if is_network(project, module, node) else called_function(project, module, node)
        return is_network(project, module, node) or (site is not None and not shares(site.module.text_of(site.node)))
    return isinstance(node, (ast.Name, ast.Attribute, ast.IfExp)) or (isinstance(node, ast.Constant) and node.value is None)


def _wrap_beside(project: Project, flow: Flow, home: SourceModule, made: ast.Call) -> tuple[SourceModule, ast.Call, str] | None:
    """A wrap in a function or class that holds the network, or makes it."""
    scopes: list[tuple[SourceModule, FunctionNode | ast.ClassDef | None]] = [(home, home.function_of(made))]
    scopes += [(s.module, s.owner) for s in flow.scopes if not s.parameters]
    done: set[tuple[str, int]] = set()
    for module, owner in scopes:
        if (module.path, id(owner)) in done:
            continue
        done.add((module.path, id(owner)))
        for call in _calls_in(module, owner):
            if (wrapped := _wrapped(project, module, call)) is not None:
                return module, call, wrapped
    return None


def _calls_in(module: SourceModule, owner: FunctionNode | ast.ClassDef | None) -> list[ast.Call]:
    if owner is None:
        return [c for c in module.nodes(ast.Call) if module.function_of(c) is None]
    return [n for n in walk(owner) if isinstance(n, ast.Call)]


def _wrapped(project: Project, module: SourceModule, call: ast.Call) -> str | None:
    """What a call wraps, "" where it has no name; None for a call that wraps nothing."""
    if is_wrap(module, call):
        return dotted(inner_of(call)) if qualified(module, call.func).startswith(("torch.", "apex.")) else None
    if is_prepare(module, call):
        given = [a for a in call.args if is_wrapped_by_prepare(project, module, call, a, many=False)]
        return dotted(given[0]) if given else None
    name = last(dotted(call.func))
    if name in getters(project) and call.args and (site := called_function(project, module, call)) is not None:
        return dotted(call.args[0]) if site.module.holds(b"DistributedDataParallel") else None
    return None
