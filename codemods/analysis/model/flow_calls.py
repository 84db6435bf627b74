"""What calls do to the values in a model: methods, torch functions, project functions, and everything unknown."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.class_index import Role, class_facts, find_class
from codemods.analysis.functions import find_function
from codemods.analysis.model.flow_elements import member_value
from codemods.analysis.model.flow_frame import Bound, Env, Frame
from codemods.analysis.model.flow_hidden import note_hidden_uses, writes_in_place
from codemods.analysis.model.flow_modules import call_refs, torch_base
from codemods.analysis.model.flow_outside import backward_pass, outside_call
from codemods.analysis.model.flow_tests import is_random_call
from codemods.analysis.model.flow_values import NONE, NOTHING, UNSET, Ref, Value, doubtful, flat, leaves, union
from codemods.analysis.model.member_kinds import Kind, Member
from codemods.analysis.model.signatures import is_static
from codemods.analysis.names import dotted, family, last, qualified
from codemods.data import torch_modules as table
from codemods.files.source import SourceModule
from codemods.runtime.record import replace

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow

# Methods of Lightning's and torch's own classes that hand no gradient on.
_FRAMEWORK_METHODS = frozenset(
    {"log", "log_dict", "print", "optimizers", "lr_schedulers", "manual_backward", "toggle_optimizer", "untoggle_optimizer",
     "save_hyperparameters", "clip_gradients", "register_buffer", "add_module", "eval", "train", "zero_grad", "parameters",
     "named_parameters", "state_dict", "get_input_embeddings", "num_parameters", "buffers"}
)  # fmt: skip
_CHECKPOINT_OPTIONS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"})
_MUTATORS = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})


def call(flow: Flow, frame: Frame, env: Env, node: ast.Call) -> Value:
    args = [flow.eval(frame, env, a) for a in node.args if not isinstance(a, ast.Starred)]
    starred = [flow.eval(frame, env, a.value) for a in node.args if isinstance(a, ast.Starred)]
    keywords = {k.arg or "**": flow.eval(frame, env, k.value) for k in node.keywords}
    if any(not s.parts for s in starred):
        keywords.setdefault("**", union(starred))  # which parameters get a value is not known
    if starred:
        args = [v for s in starred for _, v in s.parts] + args if all(s.parts for s in starred) else [*args, *map(flat, starred)]
    module = frame.module
    if is_random_call(module, node):
        return Value(random=True)
    func = node.func
    if flow.loop is not None and (outside := outside_call(flow, frame, env, node, args, keywords)) is not None:
        return outside
    if isinstance(func, ast.Call) and dotted(func.func) == "super":
        return NOTHING
    if isinstance(func, ast.Call) and _is_free_layer(module, func):
        return union([*map(flat, args), *map(flat, keywords.values())])  # `nn.MSELoss()(prediction, target)`
    if isinstance(func, ast.Attribute):
        if isinstance(func.value, ast.Call) and dotted(func.value.func) == "super":
            return _super_call(flow, frame, env, func.attr, args, keywords)
        found = _method_call(flow, frame, env, node, func, args, keywords)
        if found is not None:
            return found
    callee = flow.eval(frame, env, func) if not isinstance(func, ast.Attribute) or dotted(func) in env else NOTHING
    if callee.refs:
        return call_refs(flow, frame, callee.refs, args, keywords, node)
    if callee.closure is not None:
        return call_closure(flow, env, callee, args, keywords)
    if callee.carries:
        text = f"what {module.text_of(func)[:50]} is, is not known ({module.path}:{node.lineno})"
        return doubtful([callee, *map(flat, args), *map(flat, keywords.values())], text)
    return _function_call(flow, frame, env, node, args, keywords)


def _is_free_layer(module: SourceModule, made: ast.Call) -> bool:
    """True for a module of torch without parameters that is made where it is called."""
    name = qualified(module, made.func)
    end = last(name)
    known = name.startswith("torch.nn.") and not name.startswith(("torch.nn.functional.", "torch.nn.init.", "torch.nn.utils."))
    return known and end[:1].isupper() and end not in table.PARAMETRISED | table.UNSURE | table.AFFINE.keys() | table.CONTAINERS


def _method_call(
    flow: Flow, frame: Frame, env: Env, node: ast.Call, func: ast.Attribute, args: list[Value], keywords: dict[str, Value]
) -> Value | None:
    """`x.method(…)` where `x` is a module or a value; None for a dotted function (`torch.cat`, `F.relu`)."""
    root = dotted(func).partition(".")[0]
    if root and root in frame.module.imports and root not in env:
        return None
    owner = flow.eval(frame, env, func.value)
    everything = [flat(owner), *map(flat, args), *map(flat, keywords.values())]
    if owner.refs:
        inner = member_value(flow, owner, func.attr, frame, node)
        if inner.refs:
            return call_refs(flow, frame, inner.refs, args, keywords, node)
        if inner.closure is not None and not isinstance(inner.closure[1], Bound):
            return call_closure(flow, env, inner, args, keywords)
        return _call_own_method(flow, frame, env, owner, node, func, args, keywords)
    if func.attr in table.STOPPING_METHODS:
        if owner.random and func.attr in ("item", "any", "all", "tolist", "bool"):
            return Value(random=True)
        for name in owner.must | owner.may:
            if func.attr in ("detach", "item", "numpy"):
                flow.stopped.setdefault(name, f"{frame.module.path}:{node.lineno}")
        return NOTHING
    if func.attr in _MUTATORS and (name := dotted(func.value)):
        added = union(everything)
        if owner.carries or any(a.carries for a in [*args, *keywords.values()]) or name in env:
            listed = func.attr in ("append", "extend", "insert", "add")
            env[name] = replace(added, many=listed, parts=owner.parts if not listed else ())
        return NOTHING
    if func.attr in _MUTATORS and isinstance(func.value, ast.Subscript) and dotted(func.value.value) in env:
        _grow(env, func.value, owner, [*args, *keywords.values()], listed=func.attr in ("append", "extend", "insert", "add"))
        return NOTHING
    if func.attr in ("items", "values", "get", "pop", "keys") and (owner.parts or owner.many):
        key = args[0].constant if args and func.attr in ("get", "pop") else UNSET
        if func.attr in ("get", "pop"):
            return flow.element(owner, key if key is not UNSET else object())
        return NOTHING if func.attr == "keys" else replace(flat(owner), many=True)
    if func.attr == "copy" and (owner.parts or owner.many):
        return owner
    if not owner.carries:
        note_hidden_uses(flow, frame, env, node, [*args, *keywords.values()])
    if owner.carries and (owner.many or owner.parts) and not owner.wrapped:
        text = f"what {frame.module.text_of(func)[:50]}(…) of several values is, is not known ({frame.module.path}:{node.lineno})"
        return doubtful(everything, text)
    if any(a.carries for a in everything[1:]) and not _is_tensor_method(flow, frame, owner, func):
        text = f"what {frame.module.text_of(func)[:50]}(…) returns is not known ({frame.module.path}:{node.lineno})"
        return doubtful(everything, text)
    if writes_in_place(func.attr) and isinstance(func.value, (ast.Name, ast.Attribute, ast.Subscript)):
        flow.assign(frame, env, func.value, union(everything))
    return flow.element(owner, func.attr) if owner.wrapped else union(everything)


def _grow(env: Env, place: ast.Subscript, old: Value, added: list[Value], *, listed: bool) -> None:
    """`outputs["maps"].append(x)`: the element holds more, and so does what it is an element of."""
    name = dotted(place.value)
    whole = env[name]
    grown = replace(union(map(flat, [old, *added])), many=listed)
    key = place.slice.value if isinstance(place.slice, ast.Constant) else UNSET
    parts = tuple((k, v) for k, v in whole.parts if k != key) + (((key, grown),) if key is not UNSET else ())
    env[name] = replace(union([whole, grown]), parts=parts, many=whole.many and not parts)


def _is_tensor_method(flow: Flow, frame: Frame, owner: Value, func: ast.Attribute) -> bool:
    """True for `x.matmul(w)`; any other method of a thing that is no known tensor may do anything with its arguments."""
    if func.attr in table.TENSOR_METHODS or (owner.carries and not owner.wrapped and not owner.parts and not owner.many):
        return True
    if func.attr != "apply" or not dotted(func.value):
        return False
    site = find_class(flow.project, frame.module, dotted(func.value))
    if site is None:
        return False
    return "torch.autograd.Function" in class_facts(flow.project, site.module, site.node).external


def _call_own_method(
    flow: Flow, frame: Frame, env: Env, owner: Value, node: ast.Call, func: ast.Attribute,
    args: list[Value], keywords: dict[str, Value],
) -> Value:  # fmt: skip
    """`module.method(…)` where method is one of the class's own."""
    if flow.by_hand is not None and func.attr == "manual_backward" and args and owner.refs[0].path == "":
        flow.by_hand.append(backward_pass(flow, frame, node, args[0]))
        return NOTHING
    results = []
    for ref in owner.refs:
        site = ref.member.site
        if site is None or ref.member.kind is not Kind.MODULE:
            if func.attr in table.RETURNS_SELF:
                results.append(Value(refs=(ref,)))
            elif func.attr in ("parameters", "modules", "children", "named_parameters", "state_dict", "size", "keys"):
                results.append(NOTHING)
            else:
                text = f"what {frame.module.text_of(func)}(…) does is not known"
                below = frozenset(p for p, _ in leaves(ref))
                results.append(doubtful([*args, *keywords.values(), Value(NONE, below)], text))
            continue
        facts = class_facts(flow.project, site.module, site.node)
        found = facts.method(func.attr)
        if found is None:
            results.append(_foreign_method(frame, ref, func, args, keywords))
            continue
        inner = flow.arguments(found[1], args, dict(keywords), bound=not is_static(found[1]))
        result = flow.run(Frame(found[0].module, found[1], facts), {**inner, "self": Value(refs=(ref,))})
        results.append(result)
    return results[0] if len(results) == 1 else union(results)


def _foreign_method(frame: Frame, ref: Ref, func: ast.Attribute, args: list[Value], keywords: dict[str, Value]) -> Value:
    if func.attr in table.RETURNS_SELF:
        return Value(refs=(ref,))
    if func.attr in _FRAMEWORK_METHODS:
        return NOTHING
    return doubtful([*args, *keywords.values()], f"what {frame.module.text_of(func)}(…) returns is not known")


def _super_call(flow: Flow, frame: Frame, env: Env, name: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    owner = env.get("self", NOTHING)
    if frame.facts is None or not owner.refs:
        return doubtful([*args, *keywords.values()], f"super().{name} is not followed")
    here = next((i for i, s in enumerate(frame.facts.lineage) if frame.function in s.node.body), 0)
    for site in frame.facts.lineage[here + 1 :]:
        if name in (methods := site.methods()):
            inner = flow.arguments(methods[name], args, dict(keywords), bound=True)
            return flow.run(Frame(site.module, methods[name], frame.facts), {**inner, "self": owner})
    if name == "forward" and (base := torch_base(flow, owner.refs[0], frame.facts)) is not None:
        return union([*map(flat, args), *map(flat, keywords.values()), base])
    return doubtful([*args, *keywords.values()], f"super().{name} of a base outside the project")


def call_closure(flow: Flow, env: Env, callee: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
    function, outer = callee.closure
    if isinstance(outer, Bound):
        inner = flow.arguments(function, args, dict(keywords), bound=True)
        return flow.run(Frame(outer.module, function, outer.facts), {**inner, "self": Value(refs=(outer.ref,))})
    inner = flow.arguments(function, args, dict(keywords), bound=False)
    return flow.run(Frame(outer.module, function, outer.facts, no_grad=outer.no_grad), {**env, **inner})


def _function_call(
    flow: Flow, frame: Frame, env: Env, node: ast.Call, args: list[Value], keywords: dict[str, Value]
) -> Value:
    module = frame.module
    name = qualified(module, node.func)
    end, values = last(name), [*args, *keywords.values()]
    everything = list(map(flat, values))
    if _is_free_layer(module, node) and not any(v.carries for v in everything):
        return Value(refs=(Ref(f"({end})", Member("", Kind.FREE, end, module.path, node.lineno)),))  # called further down
    if name.startswith("torch."):
        return _torch_call(flow, frame, node, name, args, keywords)
    if name == "getattr" and len(args) > 1 and args[0].refs:
        return _by_name(flow, frame, node, args)
    if name in table.STOPPING_BUILTINS:
        return Value(random=any(v.random for v in values))
    if name in table.PASSING_BUILTINS:
        if name == "dict":
            return replace(union(everything), parts=tuple(keywords.items()))
        if name in ("list", "tuple", "reversed", "sorted") and args:
            return replace(args[0], constant=UNSET)
        return union(everything)
    if family(name) in table.DIFFERENTIABLE_FAMILIES:
        return union(everything)
    if name in ("print", "logging", "warnings.warn") or end in ("info", "debug", "warning", "log"):
        return NOTHING
    if found := find_function(flow.project, module, node.func, node):
        inner = flow.arguments(found[1], args, dict(keywords), bound=False)
        return flow.run(Frame(found[0], found[1], None), inner)
    written = dotted(node.func)
    if written and (site := find_class(flow.project, module, written)):
        facts = class_facts(flow.project, site.module, site.node)
        if facts.is_a(Role.NN_MODULE):
            return doubtful(everything, f"{site.name} is made inside the forward pass")
        return replace(union(everything), parts=tuple(keywords.items()), wrapped=site.name)
    if family(name) == "transformers" and (end.endswith("Output") or "Output" in end):
        return replace(union(everything), parts=tuple(keywords.items()), wrapped=end)
    if end in ("OrderedDict", "SimpleNamespace", "namedtuple", "AttrDict", "EasyDict", "defaultdict"):
        return replace(union(everything), parts=tuple(keywords.items()))
    below = frozenset(p for v in values for r in v.refs for p in flow.parameters_below(r))
    if any(v.closure is not None for v in values):
        below = flow.all_paths
    text = f"what {module.text_of(node.func)[:50]}(…) does with gradients is not known ({module.path}:{node.lineno})"
    return doubtful([*everything, Value(NONE, below)], text)


def _by_name(flow: Flow, frame: Frame, node: ast.Call, args: list[Value]) -> Value:
    """`getattr(self, name)`: the attribute where the name is known, else any part of the module."""
    if isinstance(args[1].constant, str):
        return member_value(flow, args[0], args[1].constant, frame, node)
    below = frozenset(p for ref in args[0].refs for p in flow.parameters_below(ref))
    text = f"which part {frame.module.text_of(node)[:50]} is, is not known ({frame.module.path}:{node.lineno})"
    return doubtful([Value(NONE, below)], text)


def _torch_call(
    flow: Flow, frame: Frame, node: ast.Call, name: str, args: list[Value], keywords: dict[str, Value]
) -> Value:
    end = last(name)
    values = [*args, *keywords.values()]
    if end in ("checkpoint", "checkpoint_sequential") and "checkpoint" in name:
        _note_checkpoint(flow, frame, node, keywords)
        rest = args[1:] if end == "checkpoint" else args[2:]
        kept = {k: v for k, v in keywords.items() if k not in _CHECKPOINT_OPTIONS}
        if args and args[0].refs:
            return call_refs(flow, frame, args[0].refs, rest, kept, node)
        if args and args[0].closure is not None:
            return call_closure(flow, {}, args[0], rest, kept)
        return doubtful(values, f"what checkpoint(…) runs is not known ({frame.module.path}:{node.lineno})")
    if end in table.STOPPING_FUNCTIONS:
        return NOTHING
    if end in table.NOT_FOLLOWED:
        return doubtful(values, f"{name} is not followed")
    if any(v.closure is not None for v in values):
        return doubtful([*values, Value(NONE, flow.all_paths)], f"a function of the model is handed to {name}")
    if any(v.refs for v in values):
        below = frozenset(p for v in values for r in v.refs for p in flow.parameters_below(r))
        return doubtful([*map(flat, values), Value(NONE, below)], f"a module is handed to {name}")
    return union(map(flat, values))


def _note_checkpoint(flow: Flow, frame: Frame, node: ast.Call, keywords: dict[str, Value]) -> None:
    given = keywords.get("use_reentrant", NOTHING).constant
    flow.checkpoints.setdefault(f"{frame.module.path}:{node.lineno}", given is not False)
