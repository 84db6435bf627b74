"""Poolers of pretrained models that no loss can reach: their class reads the hidden states of the model alone.

`BertModel` and its kin end in a layer of their own that makes `pooler_output`. A class that takes the hidden states, and averages
them or takes their first, leaves that layer without a gradient in every step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.model_usage import Entry, Usage, Verdict
from codemods.analysis.names import dotted, last, qualified
from codemods.api.findings import Evidence
from codemods.data.pooled_models import POOLED, POOLED_CHECKPOINT, UNPOOLED
from codemods.data.torch_modules import NO_GRAD
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# What may be asked of the model beside a call, none of which comes to its pooler.
_BESIDE = frozenset(
    {
        "config", "device", "dtype", "embeddings", "encoder", "get_input_embeddings", "gradient_checkpointing_disable",
        "gradient_checkpointing_enable", "named_parameters", "parameters", "resize_token_embeddings", "save_pretrained", "train",
    }
)  # fmt: skip
_TAKES_IT = lazy(rb"\.pooler\b(?!_)|[\"']pooler\b")
_FROZEN_ELSEWHERE = (b"requires_grad", b"get_peft_model", b"add_adapter", b"PeftModel")
INSTEAD = "`add_pooling_layer=False`, which leaves the pooler out, does without the flag"


def unread_pooler(project: Project, facts: ClassFacts) -> Usage | None:
    """The verdict over a class that makes such a model and never reads what its pooler makes."""
    for module, made, name in _made(facts):
        reads = [r for site in facts.lineage for r in _reads(site.module, facts, name)]
        calls = [(home, c) for home, r in reads if isinstance(c := home.parent(r), ast.Call) and c.func is r]
        if not calls or len(calls) + sum(map(_is_beside, reads)) != len(reads):
            continue
        if not all(_leaves_pooler(home, call) for home, call in calls) or _is_used_elsewhere(project, facts, name):
            continue
        home, first = calls[0]
        model, (checkpoint, parameter) = module.text_of(made.func), _checkpoint(module, made)
        default = f"`{parameter}` is {checkpoint}, its default" if parameter and "AutoModel" in model else ""
        return Usage(
            Verdict.NEVER, facts.lineage[0], Entry.FORWARD, never=(f"{name}.pooler",), dead=(f"{name}.pooler",), instead=INSTEAD,
            assumptions=(default,) if default else (), evidence=(
                Evidence("static", f"`{model}` makes the model with a pooler", module.path, made.lineno),
                Evidence("static", "its hidden states alone are read, not `pooler_output`", home.path, first.lineno),
            ),
        )  # fmt: skip
    return None


def _made(facts: ClassFacts) -> Iterator[tuple[SourceModule, ast.Call, str]]:
    """(file, call, attribute) of `self.bert = BertModel.from_pretrained(…)` that every constructor runs."""
    for site in facts.lineage:
        start = site.methods().get("__init__")
        for statement in start.body if start is not None else ():
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            owner, _, name = dotted(statement.targets[0]).partition(".")
            is_own = len(statement.targets) == 1 and owner == "self" and name.isidentifier()
            if is_own and _has_pooler(site.module, statement.value):
                yield site.module, statement.value, name


def _has_pooler(module: SourceModule, call: ast.Call) -> bool:
    """True for a model whose pooler no argument takes away."""
    if len(call.args) > 1 or any(k.arg in (None, "add_pooling_layer") for k in call.keywords):
        return False
    name = qualified(module, call.func)
    if not name.startswith("transformers."):
        return False
    made = name.removesuffix(".from_pretrained")
    return last(made) in POOLED or (last(made) == "AutoModel" and made != name and bool(_checkpoint(module, call)[0]))


def _checkpoint(module: SourceModule, call: ast.Call) -> tuple[str, str]:
    """(the checkpoint that has a pooler, the parameter of which it is the default); "" for what is not such a one."""
    given = call.args[0] if call.args else None
    parameter = given.id if isinstance(given, ast.Name) else ""
    if parameter and isinstance(function := module.function_of(call), ast.FunctionDef):
        args = [*function.args.posonlyargs, *function.args.args]
        at = [a.arg for a in args].index(parameter) - len(args) if parameter in [a.arg for a in args] else 0
        given = function.args.defaults[at] if at and -at <= len(function.args.defaults) else None
    said = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    return (said, parameter) if POOLED_CHECKPOINT.fullmatch(said) else ("", "")


def _reads(module: SourceModule, facts: ClassFacts, name: str) -> Iterator[tuple[SourceModule, ast.Attribute]]:
    """`self.bert` in the class and its bases, and what else in their files may be of it."""
    own = [site.node for site in facts.lineage]
    for node in module.nodes(ast.Attribute):
        if node.attr != name or isinstance(node.ctx, ast.Store):
            continue
        if any(module.class_of(node) is one for one in own) or dotted(node.value) != "self":
            yield module, node


def _is_beside(read: tuple[SourceModule, ast.Attribute]) -> bool:
    module, node = read
    up = module.parent(node)
    return isinstance(up, ast.Attribute) and up.attr in _BESIDE


def _leaves_pooler(module: SourceModule, call: ast.Call) -> bool:
    """True where only the hidden states are taken of what a call gives, with a gradient."""
    function = module.function_of(call)
    if function is None or any(last(dotted(_called(d))) in NO_GRAD for d in function.decorator_list):
        return False
    for up in module.ancestors(call):
        if isinstance(up, ast.With) and any(last(dotted(_called(i.context_expr))) in NO_GRAD for i in up.items):
            return False
    if _is_unpooled(module, call):
        return True
    put = module.parent(call)
    if not isinstance(put, ast.Assign) or put.value is not call or len(put.targets) != 1:
        return False
    target = put.targets[0]
    return isinstance(target, ast.Name) and _only_unpooled(module, function, put, target.id)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _is_unpooled(module: SourceModule, value: ast.AST) -> bool:
    """True for `value.last_hidden_state`, `value[0]` and their like."""
    up = module.parent(value)
    if isinstance(up, ast.Attribute):
        return up.attr in UNPOOLED
    if not isinstance(up, ast.Subscript) or up.value is not value or not isinstance(up.slice, ast.Constant):
        return False
    return up.slice.value in UNPOOLED or (up.slice.value == 0 and up.slice.value is not False)


def _only_unpooled(module: SourceModule, function: ast.AST, put: ast.Assign, name: str) -> bool:
    """True where each read of `name` behind `put`, up to the statement of its block that binds it anew, takes hidden states."""
    names = [n for n in module.nodes(ast.Name) if n.id == name and module.function_of(n) is function]
    block = module.block_of(put)
    anew = [module.statement_of(n) for n in names if isinstance(n.ctx, ast.Store)]
    below = [s for s in anew if s in block and s.lineno > put.lineno and isinstance(s, ast.Assign)]
    if any(s is not put and s not in below for s in anew) or any(isinstance(n.ctx, ast.Del) for n in names):
        return False
    end = min((s.end_lineno or s.lineno for s in below), default=None)
    reads = [n for n in names if isinstance(n.ctx, ast.Load)]
    mine = [n for n in reads if n.lineno > put.lineno and (end is None or n.lineno <= end)]
    if any(n not in mine and n.lineno <= put.lineno for n in reads):
        return False  # a loop may bring it round
    inner = any(isinstance(n, ast.Name) and n.id == name and module.function_of(n) is not function for n in ast.walk(function))
    return bool(mine) and not inner and all(_is_unpooled(module, n) for n in mine)


def _is_used_elsewhere(project: Project, facts: ClassFacts, name: str) -> bool:
    """True where a file of the project may use, freeze or replace the pooler, or asks for the attribute by its name."""
    own = {site.module.path for site in facts.lineage}
    texts = {path for word in (b"pooler", *_FROZEN_ELSEWHERE) for path in project.files_containing(word)}
    classes = [site.name.encode() for site in facts.lineage]
    for path in texts:
        data = project.read(path) or b""
        if is_test_file(path):
            continue
        if path in own and _TAKES_IT.search(data):
            return True
        if path not in own and _TAKES_IT.search(data) and (name.encode() in data or any(c in data for c in classes)):
            return True
        if any(word in data for word in _FROZEN_ELSEWHERE) and (path in own or re.search(_spoken_of(name), data)):
            return True
    asked = re.compile(rb"(?<!self)\.%b(?:\(|\.pooler)|[\"']%b[\"']" % ((re.escape(name.encode()),) * 2))
    if any(asked.search(site.module.data) for site in facts.lineage):
        return True
    word = f".{name}".encode()
    return any(path not in own and asked.search(project.read(path) or b"") for path in project.files_containing(word))


def _spoken_of(name: str) -> bytes:
    return rb"\b" + re.escape(name.encode()) + rb"\b|\.parameters\(\)|named_parameters|get_peft_model|add_adapter"
