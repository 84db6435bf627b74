"""Is a model wholly switched off in the function, above the place where it is prepared?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, line_of, walk

# What puts trained parameters into a model, or is asked of trained ones alone.
_THAWS = frozenset({"add_adapter", "inject_adapter_in_model", "get_peft_model", "accumulate", "inject_trainable_lora"})


def stays_bare(module: SourceModule, given: ast.expr) -> bool:
    """True for an argument of `accelerator.prepare(...)` that gets no wrapper: no parameter of it requires a gradient."""
    call, text = module.parent(given), dotted(given)
    if not isinstance(call, ast.Call) or last(dotted(call.func)) not in ("prepare", "prepare_model") or not text:
        return False
    asked = next((k.value for k in call.keywords if k.arg == "evaluation_mode"), None)
    return (isinstance(asked, ast.Constant) and asked.value is True) or is_frozen(module, call, text)


def is_frozen(module: SourceModule, wrap: ast.AST, text: str) -> bool:
    """True where the whole model is switched off in the function above the wrap, and nothing of it is shown to be trained."""
    home = module.function_of(wrap)
    switches = [s for s in _switches(module, text) if module.function_of(s[0]) is home and line_of(s[0]) < line_of(wrap)]
    switches.sort(key=lambda s: line_of(s[0]))
    off = _is_made_frozen(module, wrap, text)
    for _, whole, on in switches:
        off = not on and (whole or off)
    if not off:
        return False
    trained = (c for name in _THAWS for c in module.calls_named(name))
    return not any(text in [dotted(a) for a in (*c.args, getattr(c.func, "value", None))] for c in trained)


def _switches(module: SourceModule, text: str) -> Iterator[tuple[ast.AST, bool, bool]]:
    """(place, whether it is about the whole model, whether it switches on), of the model and of parts of it."""
    for call in module.calls_named("requires_grad_"):
        held = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if held == text or held.startswith(f"{text}."):
            yield call, held == text, not _is_off(call)
    for loop in module.nodes(ast.For):
        source = loop.iter
        if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute):
            continue
        held = dotted(source.func.value)
        if source.func.attr in ("parameters", "named_parameters") and (held == text or held.startswith(f"{text}.")):
            yield from ((loop, held == text and plain, on) for plain, on in _in_loop(loop))


def _in_loop(loop: ast.For) -> Iterator[tuple[bool, bool]]:
    """(whether it is done to each parameter, whether it switches on) for what the loop does to `requires_grad`."""
    for node in (n for s in loop.body for n in (s, *walk(s))):
        plain = any(node is s or (isinstance(s, ast.Expr) and node is s.value) for s in loop.body)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in node.targets):
            yield plain, not (isinstance(node.value, ast.Constant) and node.value.value is False)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            yield plain, not _is_off(node)


def _is_off(call: ast.Call) -> bool:
    given = call.args[0] if call.args else next((k.value for k in call.keywords), None)
    return isinstance(given, ast.Constant) and given.value is False


def _is_made_frozen(module: SourceModule, wrap: ast.AST, text: str) -> bool:
    """True for `net = Critic().eval().requires_grad_(False)` as the last value above the wrap."""
    home = module.function_of(wrap)
    bound = [b for b in bindings_in(module, home, text) if not b.parameter and line_of(b.node) < line_of(wrap)]
    for one in reversed(bound):
        value = one.value if not one.part else None
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "requires_grad_":
                return _is_off(value)
            value = value.func.value
        if value is None or dotted(value) != text:  # `net = net.to(device)` hands on what stood there
            return False
    return False
