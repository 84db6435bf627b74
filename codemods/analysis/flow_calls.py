"""What calls, attributes and subscripts do to the values in a model: modules, torch functions, methods, project functions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from codemods.analysis.class_index import ClassFacts, Role, class_facts, find_class
from codemods.analysis.flow_tests import cause_of, is_random_call
from codemods.analysis.flow_values import (
    NONE,
    NOTHING,
    UNSET,
    Cause,
    Decision,
    Ref,
    Value,
    doubtful,
    flat,
    leaves,
    parts_of,
    union,
)
from codemods.analysis.functions import find_function
from codemods.analysis.model_members import Kind, members_of, set_from_outside
from codemods.analysis.names import dotted, family, last, qualified
from codemods.data import torch_modules as table
from codemods.source import SourceModule

if TYPE_CHECKING:
    from codemods.analysis.model_flow import Env, Flow, Frame

# Methods of Lightning's and torch's own classes that hand no gradient on.
_FRAMEWORK_METHODS = frozenset(
    {"log", "log_dict", "print", "optimizers", "lr_schedulers", "manual_backward", "toggle_optimizer", "untoggle_optimizer",
     "save_hyperparameters", "clip_gradients", "register_buffer", "add_module", "eval", "train", "zero_grad", "parameters",
     "named_parameters", "state_dict", "get_input_embeddings", "num_parameters", "buffers"}
)  # fmt: skip


@dataclass(frozen=True)
class Bound:
    """The object a method is bound to."""

    ref: Ref
    facts: ClassFacts
    module: SourceModule


_CHECKPOINT_OPTIONS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"})
_MUTATORS = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})


# Attributes and subscripts


def attribute(flow: Flow, frame: Frame, env: Env, node: ast.Attribute) -> Value:
    name = dotted(node)
    if name in env:
        return env[name]
    owner = flow.eval(frame, env, node.value)
    if owner.refs:
        return _member(flow, owner, node.attr, frame, node)
    if node.attr in table.STOPPING_ATTRIBUTES:
        return NOTHING
    if (part := owner.part(node.attr)) is not None:
        return part
    return flow.element(owner, node.attr) if owner.wrapped or owner.parts else flat(owner)


def _member(flow: Flow, owner: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
    """`module.attr`: a sub-module, a parameter, a literal, or something the run has stored there."""
    found: list[Value] = []
    for ref in owner.refs:
        member = ref.member
        path = f"{ref.path}.{attr}" if ref.path else attr
        if (stored := flow.heap.get(f"{ref.path}|{attr}")) is not None:
            found.append(stored)
        elif member.kind is Kind.MODULE and member.site is not None:
            facts = class_facts(flow.project, member.site.module, member.site.node)
            members = members_of(flow.project, facts)
            inner = members.by_name.get(attr)
            if inner is None and (made := _method(flow, facts, ref, attr)) is not None:
                found.append(made)
                continue
            if inner is not None and inner.kind is Kind.ALIAS and inner.note in members.by_name:
                path, inner = (f"{ref.path}.{inner.note}" if ref.path else inner.note), members.by_name[inner.note]
            if inner is None or inner.kind is Kind.PLAIN:
                if attr in members.state:
                    below = frozenset(flow.parameters_below(ref))
                    found.append(Value(NONE, below, frozenset({f"what self.{attr} holds is not followed"})))
                    continue
                known = members.constants.get(attr, UNSET)
                if known is not UNSET and set_from_outside(flow.project, attr):
                    known = UNSET
                found.append(Value(constant=known) if known is not UNSET else NOTHING)
            elif inner.kind is Kind.PARAMETER:
                _note_use(flow, frame, path, node)
                found.append(Value(frozenset({path}), frozenset({path})))
            else:
                found.append(Value(refs=(Ref(path, inner, ref.partial),)))
        elif member.kind is Kind.LEAF:
            found.append(_leaf_attribute(flow, frame, ref, attr, node))
        elif member.kind is Kind.UNKNOWN:
            found.append(Value(NONE, frozenset({ref.path}), frozenset({member.note}), refs=(Ref(ref.path, member, "attribute"),)))
    return found[0] if len(found) == 1 else replace(union(found), refs=tuple(r for v in found for r in v.refs))


def _method(flow: Flow, facts: ClassFacts, ref: Ref, attr: str) -> Value | None:
    """What a property of the class gives; a method as a value, to be called later."""
    found = facts.method(attr)
    if found is None:
        return None
    if any(last(dotted(d)) in ("property", "cached_property") for d in found[1].decorator_list):
        return flow.call_method(ref, facts, attr, {})
    return Value(closure=(found[1], Bound(ref, facts, found[0].module)))


def _leaf_attribute(flow: Flow, frame: Frame, ref: Ref, attr: str, node: ast.AST) -> Value:
    """`self.fc.weight`: all of an Embedding, a part of a Linear."""
    if attr not in ("weight", "bias", "in_proj_weight"):
        return NOTHING
    _note_use(flow, frame, ref.path, node)
    names = frozenset({ref.path})
    if ref.member.note in table.ONE_PARAMETER:
        return Value(names, names)
    return Value(NONE, names, frozenset({f"only {ref.path}.{attr} is read"}))


def subscript(flow: Flow, frame: Frame, env: Env, node: ast.Subscript) -> Value:
    owner = flow.eval(frame, env, node.value)
    index = flow.eval(frame, env, node.slice) if not isinstance(node.slice, ast.Slice) else NOTHING
    if owner.refs:
        chosen = [r for ref in owner.refs for r in _chosen(flow, frame, env, ref, node, index)]
        return Value(refs=tuple(chosen))
    key = _constant_index(node.slice)
    if key is UNSET:
        key = index.constant
    if isinstance(key, int) and key < 0 and owner.parts and all(isinstance(k, int) for k, _ in owner.parts):
        key += len(owner.parts)
    if key is not UNSET:
        return flow.element(owner, key)
    if owner.parts and isinstance(node.slice, ast.Slice):
        return _sliced(owner, node.slice)
    return flow.element(owner, object()) if owner.parts or owner.many else flat(owner)


def _sliced(owner: Value, cut: ast.Slice) -> Value:
    """`pair[1:]` of a tuple whose elements are known."""
    ends = [_constant_index(e) if e is not None else None for e in (cut.lower, cut.upper, cut.step)]
    if UNSET in ends:
        return Value(NONE, owner.may | owner.must, owner.doubts | {"a slice of a tuple"})
    kept = list(islice([v for _, v in owner.parts], *ends)) if all(e is None or e >= 0 for e in ends) else []  # type: ignore[operator,arg-type]
    return replace(union(kept), parts=tuple(enumerate(kept)))


def _constant_index(node: ast.expr) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value  # type: ignore[operator]
    return UNSET


def _chosen(flow: Flow, frame: Frame, env: Env, ref: Ref, node: ast.Subscript, index: Value) -> list[Ref]:
    """The elements of a container that `container[index]` may be; partial where the index is not constant."""
    member = ref.member
    if member.kind not in (Kind.LIST, Kind.DICT, Kind.SEQUENCE):
        return [replace(ref, partial=frame.module.text_of(node))] if member.kind is not Kind.LEAF else []
    parts = parts_of(ref)
    key = _constant_index(node.slice)
    if key is UNSET:
        key = index.constant
    exact = not any(p.member.repeated for p in parts)
    if index.index_of and not (exact and isinstance(key, int)):
        if index.index_of != ref.path:
            place = f"{frame.module.path}:{node.lineno}"
            flow.assumptions.setdefault(f"the loop round {place} goes over every element of {ref.path}")
        return [replace(p, each=True) for p in parts]
    if isinstance(key, int) and exact and -len(parts) <= key < len(parts):
        return [parts[key]]
    if isinstance(key, str) and any(p.member.name == key for p in parts):
        return [p for p in parts if p.member.name == key]
    text = " ".join(frame.module.text_of(node).split())
    return [replace(p, partial=text, cause=_index_cause(flow, frame, env, node.slice)) for p in parts]


def _index_cause(flow: Flow, frame: Frame, env: Env, index: ast.expr) -> Cause:
    """What picks the element: a random number, something of this step, or the structure of the model alone."""
    random = flow.eval(frame, env, index).random if not isinstance(index, ast.Slice) else False
    cause = cause_of(frame.module, index, random=random, parameters=frame.parameters)
    if cause in (Cause.RANDOM, Cause.SCHEDULE, Cause.RANK):
        return cause
    return Cause.INDEX if flow.varies(frame, env, index) else Cause.CONFIG


# Iteration


def iterate(flow: Flow, frame: Frame, env: Env, node: ast.expr) -> list[Value] | None:
    """The values a loop variable takes when the loop goes over modules; None for any other loop."""
    if isinstance(node, ast.Call):
        name = last(dotted(node.func)) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        if name == "range":
            return _index_rounds(flow, frame, env, node)
        inner = [iterate(flow, frame, env, a) for a in node.args if not isinstance(a, ast.Starred)]
        if name == "enumerate" and inner and inner[0] is not None:
            return [_pair(Value(constant=i if len(inner[0]) > 1 else UNSET), v) for i, v in enumerate(inner[0])]
        if name in ("reversed", "list", "tuple") and inner and inner[0] is not None:
            return list(reversed(inner[0])) if name == "reversed" else inner[0]
        if name == "zip" and any(i is not None for i in inner):
            return _zipped(flow, frame, env, node, inner)
        if isinstance(node.func, ast.Attribute) and name in ("values", "items", "children", "named_children"):
            owner = flow.eval(frame, env, node.func.value)
            parts = [Value(refs=(p,)) for r in owner.refs for p in parts_of(r)]
            if not parts or any(r.member.kind is Kind.MODULE for r in owner.refs):
                return None
            return parts if name in ("values", "children") else [_pair(NOTHING, p) for p in parts]
        return None
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        value = flow.eval(frame, env, node)
        if value.refs and all(r.member.kind in (Kind.LIST, Kind.SEQUENCE) for r in value.refs):
            return [Value(refs=(p,)) for r in value.refs for p in parts_of(r)]
        if value.refs and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return [Value(refs=(r,)) for r in value.refs]
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [flow.eval(frame, env, e) for e in node.elts]
        return values if any(v.refs for v in values) else None
    return None


def _pair(*values: Value) -> Value:
    return replace(union(values), parts=tuple(enumerate(values)))


def _index_rounds(flow: Flow, frame: Frame, env: Env, node: ast.Call) -> list[Value] | None:
    """`range(len(self.blocks))`: an index that goes over all of them."""
    size = node.args[0] if len(node.args) == 1 else None
    if isinstance(size, ast.Call) and dotted(size.func) == "len" and size.args:
        owner = flow.eval(frame, env, size.args[0])
        if len(owner.refs) == 1 and owner.refs[0].member.kind in (Kind.LIST, Kind.SEQUENCE):
            count = len(owner.refs[0].member.parts)
            path = owner.refs[0].path
            return [Value(constant=i if count > 1 else UNSET, index_of=path) for i in range(count)]
    return None


def _zipped(flow: Flow, frame: Frame, env: Env, node: ast.Call, inner: list[list[Value] | None]) -> list[Value] | None:
    lengths = {len(i) for i in inner if i is not None}
    if len(lengths) != 1:
        return None
    count = lengths.pop()
    columns: list[list[Value]] = []
    for argument, found in zip(node.args, inner, strict=False):
        plain = flow.element(flow.eval(frame, env, argument), object()) if found is None else NOTHING
        columns.append(found if found is not None else [plain] * count)
    return [_pair(*row) for row in zip(*columns, strict=True)]


def comprehension(
    flow: Flow, frame: Frame, env: Env, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Value:
    inner = dict(env)
    element = node.value if isinstance(node, ast.DictComp) else node.elt
    generator = node.generators[0]
    rounds = iterate(flow, frame, inner, generator.iter) if len(node.generators) == 1 else None
    if rounds is None:
        for g in node.generators:
            flow.assign(frame, inner, g.target, flow.element(flow.eval(frame, inner, g.iter), object()))
        source = union(flow.eval(frame, env, g.iter) for g in node.generators[:1])
        made = flow.eval(frame, inner, element)
        whole = Value(made.must | (source.must if made.may >= source.must else NONE), made.may | source.may, made.doubts)
        found = [whole]
    else:
        found = []
        for value in rounds:
            flow.assign(frame, inner, generator.target, value)
            found.append(flow.eval(frame, inner, element))
    joined = union(found)
    if any(g.ifs for g in node.generators):
        return doubtful([joined], "a comprehension with a condition")
    parts = tuple(enumerate(found)) if rounds is not None and len(found) > 1 else ()
    return replace(joined, many=not parts, parts=parts)


# Calls


def call(flow: Flow, frame: Frame, env: Env, node: ast.Call) -> Value:
    args = [flow.eval(frame, env, a) for a in node.args if not isinstance(a, ast.Starred)]
    starred = [flow.eval(frame, env, a.value) for a in node.args if isinstance(a, ast.Starred)]
    keywords = {k.arg or "**": flow.eval(frame, env, k.value) for k in node.keywords}
    if starred:
        args = [v for s in starred for _, v in s.parts] + args if all(s.parts for s in starred) else [*args, *map(flat, starred)]
    module = frame.module
    if is_random_call(module, node):
        return Value(random=True)
    func = node.func
    if isinstance(func, ast.Call) and dotted(func.func) == "super":
        return NOTHING
    if isinstance(func, ast.Attribute):
        if isinstance(func.value, ast.Call) and dotted(func.value.func) == "super":
            return _super_call(flow, frame, env, func.attr, args, keywords)
        found = _method_call(flow, frame, env, node, func, args, keywords)
        if found is not None:
            return found
    callee = flow.eval(frame, env, func) if not isinstance(func, ast.Attribute) or dotted(func) in env else NOTHING
    if callee.refs:
        return _call_refs(flow, frame, callee.refs, args, keywords, node)
    if callee.closure is not None:
        return _call_closure(flow, env, callee, args, keywords)
    return _function_call(flow, frame, env, node, args, keywords)


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
        inner = _member(flow, owner, func.attr, frame, node)
        if inner.refs:
            return _call_refs(flow, frame, inner.refs, args, keywords, node)
        if inner.closure is not None and not isinstance(inner.closure[1], Bound):  # type: ignore[index]
            return _call_closure(flow, env, inner, args, keywords)
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
    if func.attr in ("items", "values", "get", "pop", "keys") and (owner.parts or owner.many):
        key = args[0].constant if args and func.attr in ("get", "pop") else UNSET
        if func.attr in ("get", "pop"):
            return flow.element(owner, key if key is not UNSET else object())
        return NOTHING if func.attr == "keys" else replace(flat(owner), many=True)
    if any(a.carries for a in everything[1:]) and not _is_tensor_method(flow, frame, owner, func):
        text = f"what {frame.module.text_of(func)[:50]}(…) returns is not known ({frame.module.path}:{node.lineno})"
        return doubtful(everything, text)
    return flow.element(owner, func.attr) if owner.wrapped else union(everything)


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
        from codemods.analysis.model_flow import Frame as NewFrame

        static = any(dotted(d) == "staticmethod" for d in found[1].decorator_list)
        inner = flow.arguments(found[1], args, dict(keywords), bound=not static)
        result = flow.run(NewFrame(found[0].module, found[1], facts), {**inner, "self": Value(refs=(ref,))})
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
    from codemods.analysis.model_flow import Frame as NewFrame

    for site in frame.facts.lineage[here + 1 :]:
        if name in (methods := site.methods()):
            inner = flow.arguments(methods[name], args, dict(keywords), bound=True)
            return flow.run(NewFrame(site.module, methods[name], frame.facts), {**inner, "self": owner})
    return doubtful([*args, *keywords.values()], f"super().{name} of a base outside the project")


def _call_closure(flow: Flow, env: Env, callee: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
    from codemods.analysis.model_flow import Frame as NewFrame

    function, outer = callee.closure  # type: ignore[misc]
    if isinstance(outer, Bound):
        inner = flow.arguments(function, args, dict(keywords), bound=True)
        return flow.run(NewFrame(outer.module, function, outer.facts), {**inner, "self": Value(refs=(outer.ref,))})
    inner = flow.arguments(function, args, dict(keywords), bound=False)
    return flow.run(NewFrame(outer.module, function, outer.facts, no_grad=outer.no_grad), {**env, **inner})


def _function_call(
    flow: Flow, frame: Frame, env: Env, node: ast.Call, args: list[Value], keywords: dict[str, Value]
) -> Value:
    module = frame.module
    name = qualified(module, node.func)
    end, values = last(name), [*args, *keywords.values()]
    everything = list(map(flat, values))
    if name.startswith("torch."):
        return _torch_call(flow, frame, node, name, args, keywords)
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
        from codemods.analysis.model_flow import Frame as NewFrame

        inner = flow.arguments(found[1], args, dict(keywords), bound=False)
        return flow.run(NewFrame(found[0], found[1], None), inner)
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
            return _call_refs(flow, frame, args[0].refs, rest, kept, node)
        if args and args[0].closure is not None:
            return _call_closure(flow, {}, args[0], rest, kept)
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


# Modules


def _call_refs(
    flow: Flow, frame: Frame, refs: tuple[Ref, ...], args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    results = [_call_ref(flow, frame, ref, args, keywords, node) for ref in refs]
    if len(results) == 1:
        return results[0]
    if any(r.parts or r.many for r in results):
        return doubtful(results, f"the outputs of several modules ({frame.module.path}:{node.lineno})")
    if all(ref.each for ref in refs):
        return union(results)
    common = frozenset.intersection(*(r.must for r in results))
    joined = union(results)
    lost = joined.must - common
    if lost and not refs[0].partial:
        text = " ".join(frame.module.text_of(node.func).split())
        flow.decisions.append(Decision(Cause.OTHER, f"which module {text} is", frame.module.path, node.lineno, lost))
    return replace(joined, must=common, may=joined.may | joined.must)


def _call_ref(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    if ref.partial:
        return _partial_call(flow, frame, ref, args, keywords, node)
    member = ref.member
    inputs = union(map(flat, [*args, *keywords.values()]))
    names = frozenset({ref.path})
    if member.kind is Kind.LEAF:
        _note_use(flow, frame, ref.path, node)
        out = union([inputs, Value(names, names)])
        if member.note in table.FIRST_OUTPUT_ONLY:
            other = Value(inputs.must, out.may, out.doubts | {f"the second output of {ref.path}"})
            return replace(out, parts=((0, out), (1, other)))
        return out
    if member.kind is Kind.UNKNOWN:
        _note_use(flow, frame, ref.path, node)
        return Value(names, names | inputs.may | inputs.must, inputs.doubts | ({member.note} if inputs.carries else NONE))
    if member.kind is Kind.FREE:
        return inputs
    if member.kind is Kind.MODULE and member.site is not None:
        return _call_module(flow, frame, ref, args, keywords, node)
    if member.kind is Kind.SEQUENCE:
        _note_use(flow, frame, ref.path, node)
        current = args
        value = inputs
        for part in parts_of(ref):
            value = _call_ref(flow, frame, part, current, {}, node)
            current = [value]
        return value
    if member.kind is Kind.CHOICE:
        return _call_choice(flow, frame, ref, args, keywords, node)
    if member.kind is Kind.PLAIN and member.note != "argument":
        return doubtful([inputs], f"what {frame.module.text_of(node.func)[:50]}(…) is, is not known")
    return doubtful([inputs], f"{frame.module.text_of(node.func)[:50]} is handed to the constructor")


def _call_module(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    site = ref.member.site
    assert site is not None
    facts = class_facts(flow.project, site.module, site.node)
    found = facts.method("forward")
    if found is None:
        below = frozenset(flow.parameters_below(ref))
        text = f"the forward of {site.name} is not part of the project"
        return doubtful([*args, *keywords.values(), Value(NONE, below)], text)
    if ref.path:
        _note_use(flow, frame, ref.path, node)
    inner = flow.arguments(found[1], args, dict(keywords), bound=True)
    from codemods.analysis.model_flow import Frame as NewFrame

    return flow.run(NewFrame(found[0].module, found[1], facts), {**inner, "self": Value(refs=(ref,))})


def _call_choice(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    """One of several modules, chosen when the model is built: each uses its own parameters, all of what they are given."""
    results: list[tuple[Value, frozenset[str]]] = []
    for part in parts_of(ref):
        result = _call_ref(flow, frame, part, args, keywords, node)
        results.append((result, frozenset(flow.parameters_below(part))))
    joined = union(r for r, _ in results)
    if any(r.parts or r.many for r, _ in results):
        return doubtful([joined], f"the outputs of {ref.path} differ by what it is")
    shared = frozenset.intersection(*(r.must for r, _ in results))
    own = frozenset(p for r, mine in results for p in r.must & mine)
    return replace(joined, must=shared | own, may=joined.may | joined.must)


def _partial_call(
    flow: Flow, frame: Frame, ref: Ref, args: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Value:
    """A call of `container[index]`: the parameters of the element take part in this step, or not."""
    below = frozenset(flow.parameters_below(replace(ref, partial="")))
    whole = _call_ref(flow, frame, replace(ref, partial=""), args, keywords, node)
    if whole.parts or whole.many:
        whole = doubtful([whole], f"the outputs of {ref.partial}")
    lost = (whole.must | whole.may) & below
    flow.decisions.append(Decision(ref.cause, ref.partial, frame.module.path, node.lineno, lost))
    return replace(flat(whole), must=whole.must - below, may=whole.may | whole.must)


def _note_use(flow: Flow, frame: Frame, path: str, node: ast.AST) -> None:
    line = getattr(node, "lineno", 0)
    text = " ".join(frame.module.text_of(node).split())
    flow.used_at.setdefault(path, (frame.module.path, line, text))
