"""Texts that are padded to the longest of their own batch and then gathered from all ranks, which need one length for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in, only_value
from codemods.analysis.loading.gathers import as_it_is, gathered_by
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_TOKENS = frozenset({"input_ids", "attention_mask", "token_type_ids", "special_tokens_mask"})
_NAMES = 3  # that hand the tokens on


@record
class GatheredTexts:
    """part: what the gather of all ranks is given. source: the tokenizer's call that it comes from. inside: the collective in a
    function of the project that `call` runs, None where the call is one itself.
    """

    call: ast.Call
    part: ast.expr
    source: ast.Call
    inside: tuple[str, int] | None


def gathered_texts(project: Project, module: SourceModule) -> Iterator[GatheredTexts]:
    """Those of a file whose tokenizer's call and gather stand in one function."""
    for source in module.nodes(ast.Call):
        function = module.function_of(source)
        if function is None or not _is_padded_to_its_own(source) or not _is_of_samples(module, source):
            continue
        for call in (n for n in walk(function) if isinstance(n, ast.Call) and n.lineno > source.lineno):
            for part in (*call.args, *(k.value for k in call.keywords)):
                if module.function_of(call) is not function or _tokenized(module, function, part) is not source:
                    continue
                inside = gathered_by(project, module, call, part)
                if inside is not None:
                    here = inside[1] is call
                    yield GatheredTexts(call, part, source, None if here else (inside[0].path, inside[1].lineno))


def _is_padded_to_its_own(call: ast.Call) -> bool:
    """True for a tokenizer's `padding=True` and `padding="longest"`, where tensors are asked for."""
    told = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    return "return_tensors" in told and told.get("padding") in (True, "longest")


def _is_of_samples(module: SourceModule, call: ast.Call) -> bool:
    """False for a text that is written out, and for one that the object holds: both are the same on every rank."""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("text", "texts")), None)
    if given is None:
        return False
    written = [given]
    if isinstance(given, ast.Name):
        bound = bindings_in(module, module.function_of(call), given.id)
        written = [b.value for b in bound if b.value is not None and not b.part]
        if len(written) < len(bound):
            return True
    return any(isinstance(n, ast.Name) and n.id != "self" for text in written for n in walk(text))


def _tokenized(module: SourceModule, function: FunctionNode, part: ast.expr, depth: int = 0) -> ast.Call | None:
    """The tokenizer's call whose tokens (`texts.input_ids`) an expression holds as they are."""
    inner = as_it_is(part)
    if isinstance(inner, ast.Name) and depth < _NAMES:
        value = only_value(bindings_in(module, function, inner.id))
        return _tokenized(module, function, value, depth + 1) if value is not None else None
    if isinstance(inner, ast.Attribute):
        holder, key = inner.value, inner.attr
    elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
        holder, key = inner.value, str(inner.slice.value)
    else:
        return None
    return _tokenizer(module, function, holder, key) if key in _TOKENS else None


def _tokenizer(module: SourceModule, function: FunctionNode, holder: ast.expr, key: str) -> ast.Call | None:
    """The call that gave `texts` of `texts.input_ids`, if nothing else gives it, or this entry of it, another value."""
    made = as_it_is(holder)
    if isinstance(made, ast.Name):
        if _is_set(module, function, made.id, key):
            return None
        bound = bindings_in(module, function, made.id)
        values = [as_it_is(b.value) for b in bound if b.value is not None and not b.part]
        other = [v for v in values if not (isinstance(v, ast.Name) and v.id == made.id)]  # `texts = texts.to(device)`
        if len(values) != len(bound) or len(other) != 1:
            return None
        made = other[0]
    return made if isinstance(made, ast.Call) else None


def _is_set(module: SourceModule, function: FunctionNode, name: str, key: str) -> bool:
    """True for `texts.input_ids = …`, and `texts["input_ids"] = …`."""
    for use in module.reads_of(name):
        up = module.parent(use)
        if module.function_of(use) is not function or not isinstance(getattr(up, "ctx", None), ast.Store):
            continue
        if (isinstance(up, ast.Attribute) and up.attr == key) or isinstance(up, ast.Subscript):
            return True
    return False
