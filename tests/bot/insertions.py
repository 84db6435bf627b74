"""What goes into the bot's texts, found in its source: from every call that writes on a forge back to where each part comes from.

A part is settled where it is a constant, a number, or goes through a function that makes it harmless. Whatever else is found is
told, so that a new writer, a new template or a new field has to be made harmless, or be named here with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import ddpfix

ROOT = Path(ddpfix.__file__).parent
FOLLOWED = ("bot/*.py", "fleet/*.py", "cli/commands/bot.py", "cli/commands/fleet*.py", "cli/fleet*.py",
            "explain.py", "run.py", "git/remotes.py", "summary/commit_messages.py")  # fmt: skip

# they make what is put in harmless; each has its own tests with hostile texts
HARMLESS = frozenset({"code", "prose", "bare", "sentence", "_word", "plural", "len", "int", "fence"})
NUMBERS = frozenset({"plural", "len", "int"})
# Texts that are put together elsewhere, out of hostile values in every field, by tests at run time.
PUT_TO_THE_TEST = frozenset({"render", "commit_message", "page"})
# the whole of a text goes through: what is in it counts. name -> which arguments
THROUGH: Mapping[str, tuple[int, ...]] = {
    "harmless": (0,), "unlinked": (0,), "fit": (0,), "str": (0,), "list": (0,), "tuple": (0,), "sorted": (0,),
    "hidden": (0,), "filter": (1,), "dict.fromkeys": (0,), "re.sub": (1, 2), "subject": (0,),
}  # fmt: skip
KEEPING = frozenset({"strip", "rstrip", "lstrip", "removesuffix", "removeprefix", "lower", "upper", "split", "splitlines"})
# What is no text of a stranger's: Class.field, or function:name where a single place is meant.
SETTLED = {
    "Finding.code": "of a codemod that is installed",
    "Finding.name": "of a codemod that is installed",
    "DdpCodemod.code": "of a codemod that is installed",
    "Topic.name": "safe, unsafe or a code: `topics.expand` takes nothing else",
    "Pull.url": "the forge's own address of a pull request",
    "MadeCommit.message": "of a `Step`, as git holds it",
    "Command.word": "only in `_word`",
    "bot/publish.py:close:above": "the body as it stands on the forge",
    "bot/publish.py:close:below": "the body as it stands on the forge",
    "Words.above": "what people wrote in the body, which stays theirs",
    "Words.below": "what people wrote in the body, which stays theirs",
    "sealed": "`Seal.of_pull`",
    "block": "signed, without white space or brackets (test_forged_marks)",
    "of_pull": "signed, without white space or brackets (test_forged_marks)",
    "token_hex": "digits",
    "rule_name": "of a codemod that is installed",
    "WORDS": "the words of the commands",
    "bot/inside.py:_settings_steps:listed": "codes that the catalog knows: `commands._codemod`",
}
PLACES = frozenset({"slug", "branch", "base", "login", "path", "text"})  # parameters and fields that are no text for a reader
PLAIN = frozenset({"int", "bool", "float", "Applicability"})


@dataclass(frozen=True)
class Where:
    """A function of a module, and what its parameters are in the call that is followed."""

    module: str
    function: ast.FunctionDef | None = None
    bound: Mapping[str, tuple[ast.expr, Where]] = field(default_factory=dict)

    def name(self) -> str:
        return f"{self.module}:{self.function.name}" if self.function else self.module


class Source:
    """The followed modules. changed: module -> other text, for the test of this test."""

    def __init__(self, changed: Mapping[str, str] | None = None) -> None:
        self.settling = HARMLESS | PUT_TO_THE_TEST
        self.trees = {**_followed(), **{name: ast.parse(text) for name, text in (changed or {}).items()}}
        self.functions: dict[str, list[Where]] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.constants: dict[tuple[str, str], ast.expr] = {}
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.functions.setdefault(node.name, []).append(Where(module, node))
                elif isinstance(node, ast.ClassDef):
                    self.classes[node.name] = node
            for statement in tree.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    self.constants[module, statement.targets[0].id] = statement.value

    @cached_property
    def by_name(self) -> Mapping[str, list[tuple[Where, ast.Call]]]:
        """Every call, by the last part of what is called."""
        out: dict[str, list[tuple[Where, ast.Call]]] = {}
        for where in [where for found in self.functions.values() for where in found]:
            for node in ast.walk(where.function or ast.Module([], [])):
                if isinstance(node, ast.Call):
                    out.setdefault(_last(node.func), []).append((where, node))
        return out

    def calls(self, *names: str) -> Iterator[tuple[Where, ast.Call]]:
        for name in names:
            yield from self.by_name.get(name, ())

    def called(self, call: ast.Call, where: Where) -> Where | None:
        """The function that a call means: of the same module, imported, or the only one of that name."""
        known = self.functions.get(_last(call.func), [])
        if isinstance(call.func, ast.Name):
            imported = {
                alias.asname or alias.name: node.module or "" for node in ast.walk(self.trees[where.module])
                if isinstance(node, ast.ImportFrom) for alias in node.names
            }  # fmt: skip
            home = imported.get(call.func.id, "")
            wanted = home.removeprefix("ddpfix.").replace(".", "/") + ".py" if home else where.module
            return next((w for w in known if w.module == wanted), None)
        return known[0] if len(known) == 1 else None

    # What is written

    def writers(self) -> dict[str, tuple[tuple[str, ...], frozenset[str]]]:
        """The forge's methods that write texts: name -> (its parameters, those that are texts). And what holds a text."""
        out = {}
        for method in self.classes["Forge"].body:
            if isinstance(method, ast.FunctionDef) and (texts := _texts(method.args.args[1:] + method.args.kwonlyargs)):
                out[method.name] = (tuple(a.arg for a in method.args.args[1:]), texts)
        out["Suggestion"] = (tuple(self.fields("Suggestion")), frozenset(self.fields("Suggestion")) - PLACES - {"first", "last"})
        out["Step"] = (("message", "files"), frozenset({"message"}))
        out["on_top"] = (("tree", "parents", "message"), frozenset({"message"}))
        return out

    def fields(self, name: str) -> dict[str, str]:
        body = self.classes[name].body if name in self.classes else []
        rows = [n for n in body if isinstance(n, ast.AnnAssign)]
        return {n.target.id: ast.unparse(n.annotation) for n in rows if isinstance(n.target, ast.Name)}

    def written(self) -> Iterator[tuple[Where, str, ast.expr]]:
        """(where, the writer and its parameter, what is written) for every call that writes."""
        writers = self.writers()
        for where, call in self.calls(*writers):
            name = _last(call.func)
            if isinstance(call.func, ast.Name) and name in ("review", "comment"):
                continue
            if name == "Step" and ast.unparse(call.func) != "git.Step":  # `run` has one of its own
                continue
            parameters, texts = writers[name]
            for parameter, value in [*zip(parameters, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]:
                if parameter in texts:
                    yield where, f"{name}({parameter})", value

    def problems(self) -> list[str]:
        """What is put into a text as it is: `module.function: writer(parameter): expression`."""
        out = []
        for where, writer, value in self.written():
            self.settling = HARMLESS | PUT_TO_THE_TEST
            out += [f"{where.name()}: {writer}: {said}" for said in self.raw(value, where, frozenset())]
            self.settling = NUMBERS | {"harmless"}
            if writer.endswith(("(body)", "(words)")):
                said = list(self.raw(value, where, frozenset()))
                out += [f"{where.name()}: {writer}: not through `harmless`: {one}" for one in said]
        return list(dict.fromkeys(out))

    # Where a part comes from

    def raw(self, node: ast.expr, where: Where, seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        """The parts of an expression that nothing makes harmless."""
        key = (where.name() + str(sorted(where.bound)), ast.unparse(node))
        if key in seen:
            return
        seen |= {key}
        parts: list[ast.expr] = []
        match node:
            case ast.Constant() | ast.Compare():
                return
            case ast.JoinedStr(values=values):
                parts = [v.value for v in values if isinstance(v, ast.FormattedValue)]
            case ast.BinOp(left=left, right=right):
                parts = [left, right]
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                pass
            case ast.Starred(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
                parts = [value]
            case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt) | ast.SetComp(elt=elt):
                parts = [elt]
            case ast.Name(id=name):
                yield from self._name(name, where, seen)
                return
            case ast.Attribute():
                yield from self._attribute(node, where, seen)
                return
            case ast.Call():
                yield from self._call(node, where, seen)
                return
            case _:
                yield f"{ast.unparse(node)} in {where.name()}"
                return
        for part in parts:
            yield from self.raw(part, where, seen)

    def _name(self, name: str, where: Where, seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        if name in where.bound:
            yield from self.raw(*where.bound[name], seen)
        elif name in SETTLED or f"{where.name()}:{name}" in SETTLED:
            return
        elif given := list(_given(where.function, name)):
            for value in given:
                yield from self.raw(value, where, seen)
        elif where.function and name in _parameters(where.function):
            yield from self._callers(name, where, seen)
        elif (constant := self._constant(name, where)) is not None:
            yield from self.raw(constant, Where(where.module), seen)
        else:
            yield f"{name} in {where.name()}"

    def _constant(self, name: str, where: Where) -> ast.expr | None:
        own = self.constants.get((where.module, name))
        return own or next((value for (_, known), value in self.constants.items() if known == name), None)

    def _callers(self, name: str, where: Where, seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        """A parameter is what every caller gives; without a caller nobody knows."""
        assert where.function
        parameters, found = list(_parameters(where.function)), False
        for caller, call in self.calls(where.function.name):
            if caller.function is where.function:
                continue
            meant = self.called(call, caller)
            if meant and meant.function is where.function:
                value = _bound(call, parameters).get(name)
                found = found or value is not None
                if value is not None:
                    yield from self.raw(value, caller, seen)
        if not found and (_annotation(where.function, name) not in PLAIN):
            yield f"{name} of {where.name()}"

    def _attribute(self, node: ast.Attribute, where: Where, seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        kind = self.kind(node.value, where)
        place = f"{kind}.{node.attr}"
        if (value := self._constant(node.attr, where)) is not None and isinstance(node.value, ast.Name) and not kind:
            yield from self.raw(value, Where(where.module), seen)  # of a module
            return
        if place in SETTLED or self.fields(kind).get(node.attr) in PLAIN or node.attr in ("number", "line", "value"):
            return
        made = [(w, v) for w, v in self._made(kind, node.attr)] if kind in self.classes else []
        if not made:
            yield f"{ast.unparse(node)} ({place}) in {where.name()}"
        for there, value in made:
            yield from self.raw(value, there, seen)

    def _made(self, kind: str, attribute: str) -> Iterator[tuple[Where, ast.expr]]:
        """What a field of a class is given, wherever one is made or replaced."""
        names = list(self.fields(kind))
        for where, call in self.calls(kind, "replace"):
            value = _bound(call, names).get(attribute) if _last(call.func) == kind else None
            if _last(call.func) == "replace" and call.args and self.kind(call.args[0], where) == kind:
                value = next((k.value for k in call.keywords if k.arg == attribute), None)
            if value is not None:
                yield where, value

    def _call(self, call: ast.Call, where: Where, seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        full, name = ast.unparse(call.func), _last(call.func)
        if name in self.settling or name in SETTLED:
            return
        through = THROUGH.get(full, THROUGH.get(name))
        if through is not None:
            parts = [call.args[at] for at in through if at < len(call.args)]
        elif isinstance(call.func, ast.Attribute) and name in ("join", "format", "replace"):
            parts = [call.func.value, *call.args, *(k.value for k in call.keywords)]
        elif isinstance(call.func, ast.Attribute) and name in KEEPING:
            parts = [call.func.value]
        elif meant := self.called(call, where):
            yield from self._returned(call, meant, where, seen)
            return
        else:
            yield f"{full}(…) in {where.name()}"
            return
        for part in parts:
            yield from self.raw(part, where, seen)

    def _returned(self, call: ast.Call, called: Where, where: Where, seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        assert called.function
        bound = {name: (value, where) for name, value in _bound(call, list(_parameters(called.function))).items()}
        inner = replace(called, bound=bound)
        for node in ast.walk(called.function):
            if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
                yield from self.raw(node.value, inner, seen)

    # What kind of value it is

    def kind(self, node: ast.expr, where: Where, depth: int = 0) -> str:
        """The class of a value as annotations tell it, "" where they do not."""
        if depth > 8 or where.function is None:
            return ""
        if isinstance(node, ast.Name):
            if node.id == "self":
                owners = (n for n in ast.walk(self.trees[where.module]) if isinstance(n, ast.ClassDef))
                return next((c.name for c in owners if where.function in c.body), "")
            if said := _annotation(where.function, node.id):
                return _class_in(said)
            kinds = {self.kind(value, where, depth + 1) for value in _given(where.function, node.id)}
            return kinds.pop() if len(kinds) == 1 else ""
        if isinstance(node, ast.Attribute):
            return _class_in(self.fields(self.kind(node.value, where, depth + 1)).get(node.attr, ""))
        if isinstance(node, ast.Subscript):
            return self.kind(node.value, where, depth + 1)
        if isinstance(node, ast.Call):
            name = _last(node.func)
            if name in self.classes:
                return name
            if name == "replace" and node.args:
                return self.kind(node.args[0], where, depth + 1)
            known = self.functions.get(name, [])
            returns = {ast.unparse(w.function.returns) for w in known if w.function and w.function.returns}
            return _class_in(returns.pop()) if len(returns) == 1 else ""
        return ""


@cache
def _followed() -> dict[str, ast.Module]:
    """The trees of the modules as they are; nothing changes one."""
    files = [path for pattern in FOLLOWED for path in sorted(ROOT.glob(pattern))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def _texts(arguments: list[ast.arg]) -> frozenset[str]:
    return frozenset(
        a.arg for a in arguments
        if a.arg not in PLACES and a.annotation and ast.unparse(a.annotation) in ("str", "str | None")
    )  # fmt: skip


def _last(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    for argument in function.args.args + function.args.kwonlyargs:
        if argument.arg not in ("self", "cls"):
            yield argument.arg


def _annotation(function: ast.FunctionDef, name: str) -> str:
    found = [a.annotation for a in function.args.args + function.args.kwonlyargs if a.arg == name and a.annotation]
    found += [
        n.annotation for n in ast.walk(function)
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and n.target.id == name
    ]  # fmt: skip
    return ast.unparse(found[0]) if found else ""


def _class_in(annotation: str) -> str:
    """`Pull`, `Pull | None`, `Sequence[Pull]`, `git.Pull` -> Pull."""
    inner = annotation.removesuffix(" | None").strip("'\"")
    while inner.endswith("]") and "[" in inner:
        inner = inner[inner.index("[") + 1 : -1].removesuffix(", ...")
    return inner.rpartition(".")[2]


def _bound(call: ast.Call, parameters: list[str]) -> dict[str, ast.expr]:
    return {**dict(zip(parameters, call.args, strict=False)), **{k.arg: k.value for k in call.keywords if k.arg}}


def _given(function: ast.FunctionDef | None, name: str) -> Iterator[ast.expr]:
    """What a local name is given: assignments, loops, what is appended to it."""
    for node in ast.walk(function) if function else ():
        pairs: list[tuple[ast.expr, ast.expr]] = []
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                pairs = [(target, value)]
            case ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                pairs = [(target, value)]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=known), attr="append" | "extend"), args=[value]) if known == name:
                yield value
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from (v for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name) and t.id == name)
            elif any(isinstance(t, ast.Name) and t.id == name for t in ast.walk(target)):
                yield value
