"""Does each rank draw weights of its own for a network? By a seed with the rank in it, or by none at all."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.literals import is_none
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.seed_before import seed_before
from codemods.analysis.loading.seeds import is_seeded
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.early_copies import LOADS, EarlyCopy, always_runs_beside
from codemods.analysis.wrapped.saving_calls import of_state
from codemods.analysis.wrapped.wraps import is_wrap, without_moves
from codemods.files.source import SourceModule, stands_above, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_LOADED_INSIDE = lazy(
    r"from_pretrained\(|torch\.load\(|load_state_dict|load_url|hub\.load|pretrained\s*=\s*True|weights\s*=\s*[^N\s]"
)
_STORED = lazy(r"pretrain|weight|checkpoint|ckpt|state_dict")


@record
class Drawn:
    """Where the weights are drawn, and the seed above: None where nothing of the project seeds anything."""

    module: SourceModule
    made: ast.expr
    home: SourceModule | None
    seed: ast.Call | None


def drawn_by_each_rank(project: Project, copy: EarlyCopy) -> Drawn | None:
    """How each rank came to weights of its own for what is copied; None where that is not shown, or a checkpoint is loaded."""
    made = [o for o in origins(project, copy.module, copy.source) if not _hands_on(copy, o)]
    if not made or not all(_draws(project, o) for o in made) or _loads_between(copy, made):
        return None
    found: Drawn | None = None
    for origin in made:
        before = seed_before(project, origin.module, origin.node, "torch")
        if before is None and not is_seeded(project):
            found = found or Drawn(origin.module, origin.node, None, None)
        elif before is None or not before.of_rank:
            return None
        else:
            found = found or Drawn(origin.module, origin.node, before.module, before.call)
    return found


def _hands_on(copy: EarlyCopy, origin: Origin) -> bool:
    """True for `net = convert(net)`, for the wrap below, and for None."""
    node = origin.node
    if is_none(node):
        return True
    if not isinstance(node, ast.Call) or origin.module is not copy.module:
        return False
    return is_wrap(origin.module, node) or dotted(copy.source) in [dotted(a) for a in node.args]


def _draws(project: Project, origin: Origin) -> bool:
    """True for a call that makes a network, and is handed no weights."""
    origin = Origin(origin.module, without_moves(origin.node), origin.path, origin.known)
    call = origin.node
    if not origin.known or origin.path or not isinstance(call, ast.Call):
        return False
    name = last(qualified(origin.module, call.func) or dotted(call.func))
    if LOADS.search(name) or name.startswith("from_") or _is_loaded_in(origin):
        return False
    given = [k for k in call.keywords if k.arg is not None and _STORED.search(k.arg)]
    if any(not _is_nothing(origin.module, k.value) for k in given):
        return False
    site = made_class(project, origin)
    return site is None or _is_plain_network(project, site)


def _is_plain_network(project: Project, site: ClassSite) -> bool:
    facts = class_facts(project, site.module, site.node)
    if not facts.is_a(Role.NN_MODULE):
        return False
    return not any(_LOADED_INSIDE.search(s.module.text_of(s.node)) for s in facts.lineage)


def _is_nothing(module: SourceModule, value: ast.expr) -> bool:
    """True for None, False and "", and for an option whose default is one of them."""
    if isinstance(value, ast.Constant):
        return not value.value
    if not isinstance(value, ast.Attribute):
        return False
    found: list[bool] = []
    for call in module.calls_named("add_argument"):
        names = [str(a.value).lstrip("-").replace("-", "_") for a in call.args if isinstance(a, ast.Constant)]
        if value.attr in names and any(isinstance(a, ast.Constant) and str(a.value).startswith("--") for a in call.args):
            default = next((k.value for k in call.keywords if k.arg == "default"), None)
            found.append(default is None or (isinstance(default, ast.Constant) and not default.value))
    return found == [True]


def _is_loaded_in(origin: Origin) -> bool:
    """True where the function that makes the network may fill it from a file as well."""
    function = origin.module.function_of(origin.node)
    if function is None:
        return False
    target = _target(origin)
    calls = (n for n in walk(function) if isinstance(n, ast.Call) and stands_above(origin.node, n))
    return any(_loads(c, target) and always_runs_beside(origin.module, c, origin.node) for c in calls)


def _target(origin: Origin) -> str:
    up = origin.module.statement_of(origin.node)
    return dotted(up.targets[0]) if isinstance(up, ast.Assign) and len(up.targets) == 1 else ""


def _loads(call: ast.Call, name: str) -> bool:
    """True for `net.load_state_dict(...)` and `load_checkpoint(net, path)`; with `net.state_dict()` another one is filled."""
    if not name or not LOADS.search(last(dotted(call.func))):
        return False
    about = [a for a in (*call.args, *(k.value for k in call.keywords)) if of_state(a) is None]
    about += [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return any(dotted(n) == name for a in about for n in walk(a) if isinstance(n, (ast.Name, ast.Attribute)))


def _loads_between(copy: EarlyCopy, made: list[Origin]) -> bool:
    """True where the function of the copy always fills the network from a file above it."""
    module = copy.module
    function = module.function_of(copy.made)
    calls = [c for c in module.nodes(ast.Call) if module.function_of(c) is function and stands_above(c, copy.made)]
    calls = [c for c in calls if not any(o.node is c for o in made)]
    return any(_loads(c, dotted(copy.source)) and always_runs_beside(module, c, copy.made) for c in calls)
