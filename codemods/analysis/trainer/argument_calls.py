"""Where code gives parameters to TrainingArguments, its heirs and the Trainer: keywords, and the keys of a dict behind `**`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.trainer.references import binding_scope, bindings, names_of
from codemods.api.findings import DropKey, DropKeyword, Edit, RemoveStatement, RenameKeyword, ReplaceExpression
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Given:
    """One parameter given in code. shown: the call or dict for people; beside: the other names given there; fixed: why it cannot
    be changed, "" where it can."""

    module: SourceModule
    name: str
    node: ast.expr | ast.keyword
    value: ast.expr
    holder: ast.expr
    shown: str
    beside: frozenset[str]
    own_trainer: bool = False
    fixed: str = ""

    @property
    def literal(self) -> str | None:
        try:
            return repr(ast.literal_eval(self.value))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None

    def renamed(self, name: str, value: str = "") -> list[Edit]:
        path, module = self.module.path, self.module
        edits: list[Edit] = [ReplaceExpression(path, module.span(self.value), value)] if value else []
        if isinstance(self.node, ast.keyword):
            return [RenameKeyword(path, module.span(self.holder), self.name, name), *edits]
        written = module.text_of(self.node)
        quote = written[-1]
        return [ReplaceExpression(path, module.span(self.node), f"{quote}{name}{quote}"), *edits]

    def own_uses(self) -> list[ast.Attribute]:
        """Where the attribute of this very object is read or set: `args.name` of an `args` that is bound to this call alone."""
        module, made = self.module, self.module.parent(self.holder)
        targets = made.targets if isinstance(made, ast.Assign) else [made.target] if isinstance(made, ast.AnnAssign) else []
        if not isinstance(self.holder, ast.Call) or len(targets) != 1 or not isinstance(target := targets[0], ast.Name):
            return []
        scope = binding_scope(module, target)
        if bindings(module, target.id, scope) != [made]:
            return []
        uses = (module.parent(n) for n in names_of(module, target.id, scope))
        named = [u for u in uses if isinstance(u, ast.Attribute) and u.attr == self.name]
        # Python 3.11 does not say where in an f-string an expression stands
        return [u for u in named if not any(isinstance(up, ast.JoinedStr) for up in module.ancestors(u))]

    def dropped(self) -> list[Edit]:
        """Out of the call, the dict literal, or without the assignment of its key; no edit where making its value may do more."""
        path, module = self.module.path, self.module
        if isinstance(self.node, ast.keyword):
            return [DropKeyword(path, module.span(self.holder), self.name)]
        if isinstance(self.holder, ast.Dict) and any(key is self.node for key in self.holder.keys):
            return [DropKey(path, module.span(self.holder), self.name)]
        statement = module.statement_of(self.node)
        plain = (self.literal is not None or isinstance(self.value, ast.Name)) and module.is_whole(statement)
        return [RemoveStatement(path, module.span(statement))] if plain else []


def given(project: Project, module: SourceModule, wanted: Collection[str]) -> Iterator[Given]:
    """The parameters given to TrainingArguments or a Trainer in calls that have one of `wanted`, or a `**`, in order.

    Which class a call makes is asked of few calls only: the answer may lie several files away.
    """
    for call in module.nodes(ast.Call):
        if not any(k.arg is None or k.arg in wanted for k in call.keywords):
            continue
        kind = _kind(project, module, call)
        if kind is None:
            continue
        trainer = kind is Role.HF_TRAINER
        names = frozenset(k.arg for k in call.keywords if k.arg)
        own = frozenset() if trainer else _own_fields(project, module, call)
        shown = f"{module.text_of(call.func)}(…)"
        for keyword in call.keywords:
            if keyword.arg and keyword.arg not in own:
                yield Given(module, keyword.arg, keyword, keyword.value, call, shown, names - {keyword.arg}, trainer)
            elif keyword.arg is None and not trainer:
                yield from (g for g in splatted(module, keyword.value, shown, names) if g.name not in own)


def training_argument_calls(project: Project, module: SourceModule) -> Iterator[ast.Call]:
    """The calls of TrainingArguments and its heirs."""
    return (c for c in module.nodes(ast.Call) if _kind(project, module, c) is Role.HF_ARGUMENTS)


def _kind(project: Project, module: SourceModule, call: ast.Call) -> Role | None:
    """HF_ARGUMENTS or HF_TRAINER for a call whose keywords reach that class of transformers."""
    if _is_super_init(call):
        place = module.method_of(call)
        facts = class_facts(project, module, place[0]) if place else None
        if facts is None or not facts.is_a(Role.HF_TRAINER) or len(facts.lineage) != 1:
            return None
        return Role.HF_TRAINER if all(family(n) == "transformers" for n in facts.external) and not facts.opaque else None
    written = dotted(call.func)
    if not written or not last(written)[:1].isupper():
        return None
    if site := find_class(project, module, written):
        facts = class_facts(project, site.module, site.node)
        if facts.is_a(Role.HF_ARGUMENTS):
            return Role.HF_ARGUMENTS
        plain = facts.is_a(Role.HF_TRAINER) and all(family(n) == "transformers" for n in facts.external) and not facts.opaque
        hands_on = all(_hands_on(s.module, s.methods().get("__init__")) for s in facts.lineage)
        return Role.HF_TRAINER if plain and hands_on else None
    name = qualified(module, call.func)
    role = external_role(name)
    if role is Role.HF_TRAINER:
        return role if family(name) == "transformers" else None
    return role if role is Role.HF_ARGUMENTS else None


def _own_fields(project: Project, module: SourceModule, call: ast.Call) -> frozenset[str]:
    """The fields that a project's own heir of TrainingArguments defines: they are there whatever transformers has."""
    site = find_class(project, module, dotted(call.func))
    lineage = class_facts(project, site.module, site.node).lineage if site else ()
    fields = (s for c in lineage for s in c.node.body if isinstance(s, ast.AnnAssign))
    return frozenset(f.target.id for f in fields if isinstance(f.target, ast.Name))


def _is_super_init(call: ast.Call) -> bool:
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "__init__"
        and isinstance(func.value, ast.Call)
        and dotted(func.value.func) == "super"
    )


def _hands_on(module: SourceModule, method: FunctionNode | None) -> bool:
    """True where a class has no `__init__`, or one that takes `**` and says nothing of a tokenizer itself."""
    if method is None:
        return True
    text = module.text_of(method)
    return method.args.kwarg is not None and "tokenizer" not in text and "processing_class" not in text


def splatted(module: SourceModule, value: ast.expr, shown: str, beside: frozenset[str]) -> Iterator[Given]:
    """The parameters of a `**` argument: a literal, or a name that is bound to such alone and used for nothing else.

    A test may decide over which one it is (`more = {}`, and `more = dict(…)` below `if`): each has its own keys beside it.
    """
    fixed = ""
    stores: list[tuple[ast.Constant, ast.expr]] = []
    made = [value]
    if isinstance(value, ast.Name):
        scope = binding_scope(module, value)
        made = list(_assigned(module, value.id, scope))
        fixed, stores = _other_uses(module, value.id, scope)
    held = [one for several in made for one in _alternatives(several)]
    if not held or not all(_is_dict(one) for one in held):
        return
    later = [(str(key.value), key, value) for key, value in stores]
    every = frozenset(name for one in held for name, _, _ in _entries(one))
    for index, one in enumerate(held):
        own = list(_entries(one))
        names = every if later else frozenset(name for name, _, _ in own)  # what is stored later may stand beside all of them
        keys = beside | names | {name for name, _, _ in later}
        for name, node, of in [*own, *(later if index == 0 else ())]:
            if isinstance(node, ast.keyword) or _is_text(module, node):
                yield Given(module, name, node, of, one, shown, keys - {name}, fixed=fixed)


def _is_text(module: SourceModule, key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and module.text_of(key)[-1] in "'\""


def _assigned(module: SourceModule, word: str, scope: ast.AST) -> Iterator[ast.expr]:
    """The values that the name is given in its scope; nothing where one of them comes in another way than by `word = value`."""
    made = bindings(module, word, scope)
    plain = [b for b in made if isinstance(b, (ast.Assign, ast.AnnAssign)) and b.value is not None and _names_only(b)]
    if len(plain) == len(made):
        yield from (b.value for b in plain if b.value is not None)


def _names_only(made: ast.Assign | ast.AnnAssign) -> bool:
    return all(isinstance(t, ast.Name) for t in (made.targets if isinstance(made, ast.Assign) else [made.target]))


def _alternatives(value: ast.expr) -> Iterator[ast.expr]:
    """Both sides of `a if test else b`; else the value itself."""
    if isinstance(value, ast.IfExp):
        yield from _alternatives(value.body)
        yield from _alternatives(value.orelse)
    else:
        yield value


def _is_dict(value: ast.expr) -> bool:
    return isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and dotted(value.func) == "dict")


def _entries(value: ast.expr) -> Iterator[tuple[str, ast.expr | ast.keyword, ast.expr]]:
    """(name, where the name stands, value) of a dict that is written out."""
    if isinstance(value, ast.Dict):
        yield from ((str(k.value), k, v) for k, v in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant))
    elif isinstance(value, ast.Call):
        yield from ((k.arg, k, k.value) for k in value.keywords if k.arg)


def _other_uses(module: SourceModule, word: str, scope: ast.AST) -> tuple[str, list[tuple[ast.Constant, ast.expr]]]:
    """(what else is done with the dict, "" for nothing; its keys that are assigned one by one)."""
    stores: list[tuple[ast.Constant, ast.expr]] = []
    for name in names_of(module, word, scope):
        if not isinstance(name.ctx, ast.Load):
            continue
        up = module.parent(name)
        statement = module.parent(up) if up is not None else None
        if isinstance(up, ast.keyword) and up.arg is None:
            continue
        if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Constant) and isinstance(statement, ast.Assign):
            if len(statement.targets) == 1 and statement.targets[0] is up:
                stores.append((up.slice, statement.value))
                continue
        return f"{word} is used at line {name.lineno} as well", stores
    return "", stores
