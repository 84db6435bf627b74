"""The sub-modules and parameters a model class registers: what makes each one, and under which condition it exists."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.functions import find_function
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.signatures import returned
from codemods.data import torch_modules as table
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk


class Kind(Enum):
    """What an attribute holds."""

    LEAF = "a module of torch with parameters"
    PARAMETER = "a parameter"
    MODULE = "a module of the project"
    SEQUENCE = "modules called one after the other"
    LIST = "a list of modules"
    DICT = "modules by name"
    CHOICE = "one of several, chosen when the model is built"
    FREE = "a module or function of torch without parameters"
    PLAIN = "no module"
    ALIAS = "another attribute's module"
    UNKNOWN = "something made outside the project"


@dataclass(frozen=True, slots=True)
class Member:
    """What `self.name` is. parts: elements of a container or the choices. condition: the test it is made under, if any.

    note: the class's name, the reason it is unknown, or the attribute an alias stands for. repeated: made in a loop, so it
    stands for as many elements of its container as the loop has rounds.
    """

    name: str
    kind: Kind
    note: str
    path: str
    line: int
    site: ClassSite | None = None
    parts: tuple[Member, ...] = ()
    condition: str = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Members:
    """All that a class registers.

    constants: attributes that are always the same literal. state: attributes that methods other than the constructor assign.
    problems: what hides members.
    """

    by_name: dict[str, Member]
    constants: dict[str, object]
    state: frozenset[str]
    frozen: frozenset[str]
    problems: tuple[str, ...]


_MODULE_WORD = re.compile(
    r"(^|_)(model|net|network|encoder|decoder|backbone|head|heads|teacher|student|critic|module|generator|discriminator|unet|"
    r"transformer|policy|embedder|embedding|trunk|tower|denoiser|vae|lm|llm|clip|base_model|net_g|net_d)s?$"
)
# Objects of other packages that people keep on a model and that hold no parameters.
_HARMLESS_OBJECT = re.compile(
    r"(Tokenizer|Processor|Config|Logger|Writer|Scheduler|Sampler|Extractor|Parser|Path|Metric|Meter|Accuracy|Lock|Queue)\w*$"
)
_NO_MODULES = frozenset(
    {"numpy", "math", "os", "pathlib", "functools", "collections", "random", "time", "logging", "json", "re", "copy",
     "itertools", "operator", "torchmetrics", "scipy", "sklearn", "pandas", "string", "dataclasses", "typing", "enum",
     "matplotlib", "PIL", "cv2", "yaml", "omegaconf", "warnings", "contextlib", "types", "inspect", "threading",
     "tokenizers", "sentencepiece", "nltk", "wandb", "lightning_utilities"}
)  # fmt: skip


def members_of(project: Project, facts: ClassFacts) -> Members:
    """What the class and its project ancestors register, remembered for the project."""
    site = facts.lineage[0]
    return project.memo(("model members", site.module.path, site.node.lineno), lambda: _Reader(project, facts).read())


# Methods that change what a call or an attribute of the model means.
_INTERCEPTORS = ("__call__", "__getattr__", "__getattribute__", "__setattr__")


_BUILTINS = frozenset(dir(builtins))


class _Reader:
    """Reads the constructors of one class, its ancestors' first."""

    def __init__(self, project: Project, facts: ClassFacts) -> None:
        self.project, self.facts = project, facts
        self.found: dict[str, list[Member]] = {}
        self.constants: dict[str, list[object]] = {}
        self.frozen: set[str] = set()
        self.state: set[str] = set()
        self.problems: list[str] = []

    def read(self) -> Members:
        self.problems += [f"its base {name} is not part of the project" for name in self.facts.opaque]
        for site in reversed(self.facts.lineage):
            self.problems += [f"{site.name} has its own {name}" for name in _INTERCEPTORS if name in site.methods()]
            builders = set(_builders(site))
            for function in site.methods().values():
                if function in builders:
                    self._constructor(site, function)
                else:
                    self._other_method(site, function)
        merged = {name: _merged(name, values) for name, values in self.found.items()}
        merged = {name: _without_aliases(member, merged) for name, member in merged.items()}
        changed = self._assigned_twice | self.state
        constants = {n: v[0] for n, v in self.constants.items() if len(v) == 1 and n not in changed}
        return Members(merged, constants, frozenset(self.state), frozenset(self.frozen), tuple(dict.fromkeys(self.problems)))

    @property
    def _assigned_twice(self) -> set[str]:
        return {name for name, values in self.found.items() if len(values) > 1}

    def _constructor(self, site: ClassSite, function: FunctionNode) -> None:
        for node in walk(function):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    self._assignment(site, function, target, node.value)
            elif isinstance(node, ast.Call):
                self._call(site, function, node)

    def _assignment(self, site: ClassSite, function: FunctionNode, target: ast.expr, value: ast.expr) -> None:
        name = dotted(target)
        if name.endswith(".requires_grad") and isinstance(value, ast.Constant) and value.value is False:
            self._freeze(site, function, target)
            return
        if isinstance(target, ast.Attribute) and name.count(".") == 1 and name.startswith("self."):
            made = self._unless_called(target.attr, value, self.member(site, function, value))
            condition = _condition(site.module, target, function)
            line = target.lineno
            self.found.setdefault(target.attr, []).append(
                replace(made, name=target.attr, line=line, path=site.module.path, condition=condition)
            )
            constant = value.value if isinstance(value, ast.Constant) and not condition else value
            self.constants.setdefault(target.attr, []).append(constant)
            if not isinstance(value, ast.Constant) or condition:
                self.constants[target.attr].append(value)  # two entries: never taken for a constant
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                if dotted(element).startswith("self."):
                    self.problems.append(f"{dotted(element)} is unpacked from {site.module.text_of(value)[:60]}")
        elif isinstance(target, ast.Subscript) and dotted(target.value).startswith("self."):
            owner = dotted(target.value).split(".")[1]
            made = _marked(self.member(site, function, value), _in_loop(site.module, target, function))
            for i, old in enumerate(self.found.get(owner, [])):
                self.found[owner][i] = replace(old, parts=(*old.parts, made)) if made.kind is not Kind.PLAIN else old

    def _call(self, site: ClassSite, function: FunctionNode, call: ast.Call) -> None:
        """Registrations by call: `register_parameter`, `add_module`, `self.blocks.append(…)`, `setattr`."""
        func = call.func
        name = dotted(func)
        if name == "setattr" or (name in ("self.add_module", "self.register_module") and not _literal_name(call)):
            self.problems.append(f"{site.module.text_of(call)[:60]} registers under a name that is not written out")
        elif name in ("self.add_module", "self.register_module", "self.register_parameter") and len(call.args) > 1:
            key = _literal_name(call)
            made = self.member(site, function, call.args[1])
            condition = _condition(site.module, call, function)
            if key:
                named = replace(made, name=key, line=call.lineno, path=site.module.path, condition=condition)
                self.found.setdefault(key, []).append(named)
        elif isinstance(func, ast.Attribute) and func.attr in ("append", "extend", "insert", "add_module", "update"):
            owner = dotted(func.value)
            if owner.count(".") == 1 and owner.startswith("self.") and call.args:
                made = _marked(self.member(site, function, call.args[-1]), _in_loop(site.module, call, function))
                olds = self.found.get(owner[5:], [])
                added = made.parts if func.attr == "extend" else (made,)
                self.found[owner[5:]] = [replace(old, parts=(*old.parts, *added)) for old in olds]
        elif isinstance(func, ast.Attribute) and func.attr == "requires_grad_" and _is_false(call):
            self._freeze(site, function, func.value)

    def _freeze(self, site: ClassSite, function: FunctionNode, what: ast.AST) -> None:
        """`self.x.requires_grad_(False)`, or `p.requires_grad = False` in a loop over `self.x.parameters()`."""
        module = site.module
        if _condition(module, what, function):
            self.problems.append(f"parameters are frozen under a test ({module.path}:{what.lineno})")  # type: ignore[attr-defined]
            return
        name = dotted(what.value if isinstance(what, ast.Attribute) and what.attr == "requires_grad" else what)
        if name.startswith("self."):
            self.frozen.add(name[5:])
            return
        for up in module.ancestors(what):
            if isinstance(up, ast.For) and isinstance(up.iter, ast.Call) and isinstance(up.iter.func, ast.Attribute):
                owner = dotted(up.iter.func.value)
                if up.iter.func.attr == "parameters" and owner.startswith("self."):
                    self.frozen.add(owner[5:])
                elif owner == "self" and up.iter.func.attr == "parameters":
                    self.problems.append(f"parameters are frozen one by one ({module.path}:{up.lineno})")
                return

    def _other_method(self, site: ClassSite, function: FunctionNode) -> None:
        """A module made outside the constructor, or a freeze during training, hides what DDP was told."""
        for node in walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    name = dotted(target)
                    if name.endswith(".requires_grad"):
                        self.problems.append(f"{function.name} changes requires_grad ({site.module.path}:{node.lineno})")
                        continue
                    if name.startswith("self.") and name.count(".") == 1:
                        changed = self.constants.setdefault(name[5:], [])
                        changed += [node.value, node.value]  # two entries: never taken for a constant
                        if not isinstance(node.value, ast.Constant):
                            self.state.add(name[5:])
                    if name.startswith("self.") and name.count(".") == 1 and isinstance(node.value, ast.Call):
                        made = self.member(site, function, node.value)
                        if made.kind not in (Kind.PLAIN, Kind.FREE, Kind.UNKNOWN, Kind.ALIAS):
                            self.problems.append(f"{name} is made in {function.name} ({site.module.path}:{node.lineno})")
            elif isinstance(node, ast.Call) and last(dotted(node.func)) in ("requires_grad_", "freeze", "unfreeze"):
                self.problems.append(f"{function.name} freezes or unfreezes ({site.module.path}:{node.lineno})")

    # What an expression makes

    def member(self, site: ClassSite, function: FunctionNode, value: ast.expr, depth: int = 0) -> Member:
        """What the expression, evaluated in `function`, makes."""
        module = site.module

        def made(kind: Kind, note: str = "", **more: object) -> Member:
            return Member("", kind, note, module.path, value.lineno, **more)  # type: ignore[arg-type]

        if depth > 8:
            return made(Kind.UNKNOWN, "its construction is nested too deeply")
        if isinstance(value, ast.Call):
            return self._call_member(site, function, value, depth)
        if isinstance(value, ast.IfExp):
            return _choice(made(Kind.CHOICE), [self.member(site, function, v, depth + 1) for v in (value.body, value.orelse)])
        if isinstance(value, ast.BoolOp):
            return _choice(made(Kind.CHOICE), [self.member(site, function, v, depth + 1) for v in value.values])
        if isinstance(value, ast.Name):
            return self._name_member(site, function, value, depth)
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self":
            return made(Kind.ALIAS, value.attr)
        if isinstance(value, ast.Attribute):
            name = qualified(module, value)
            return made(Kind.FREE, name) if name.startswith(("torch.nn.functional.", "torch.")) else made(Kind.PLAIN)
        if isinstance(value, (ast.List, ast.Tuple)):
            return made(Kind.LIST, "plain", parts=tuple(self.member(site, function, e, depth + 1) for e in value.elts))
        if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
            part = replace(self.member(site, function, value.elt, depth + 1), repeated=True)
            return made(Kind.LIST, "plain", parts=(part,))
        if isinstance(value, ast.Dict):
            parts = tuple(self.member(site, function, v, depth + 1) for v in value.values)
            keys = tuple(k.value if isinstance(k, ast.Constant) else "" for k in value.keys)
            named = tuple(replace(p, name=str(k)) for p, k in zip(parts, keys, strict=True))
            return made(Kind.DICT, "plain", parts=named)
        if isinstance(value, ast.DictComp):
            part = replace(self.member(site, function, value.value, depth + 1), repeated=True)
            return made(Kind.DICT, "plain", parts=(part,))
        if isinstance(value, ast.Starred):
            return self.member(site, function, value.value, depth + 1)
        return made(Kind.PLAIN)

    def _name_member(self, site: ClassSite, function: FunctionNode, name: ast.Name, depth: int) -> Member:
        """A local name: the values it is given, and for a list what is appended to it."""
        module = site.module
        values: list[ast.expr] = []
        added: list[ast.expr] = []
        for node in walk(function):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name.id for t in node.targets):
                values.append(node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name.id:
                added.append(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                if node.func.attr in ("append", "extend", "insert") and dotted(node.func.value) == name.id:
                    added.append(node.args[-1])
        here = Member("", Kind.PLAIN, "", module.path, name.lineno)
        if not values:
            return self._argument(site, function, name, here)
        values = [v for v in values if not any(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(v))] or values[:1]
        found = [self.member(site, function, v, depth + 1) for v in values]
        if not added:
            return found[0] if len(found) == 1 else _choice(replace(here, kind=Kind.CHOICE), found)
        parts = [p for f in found for p in f.parts]
        for extra in added:
            one = _marked(self.member(site, function, extra, depth + 1), _in_loop(module, extra, function))
            parts += one.parts if one.kind is Kind.LIST and one.note == "plain" else (one,)
        return replace(here, kind=Kind.LIST, note="plain", parts=tuple(parts))

    def _argument(self, site: ClassSite, function: FunctionNode, name: ast.Name, here: Member) -> Member:
        """A parameter of the constructor: a module where its annotation or its name says so."""
        args = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        arg = next((a for a in args if a.arg == name.id), None)
        if arg is not None:
            annotation = site.module.text_of(arg.annotation) if arg.annotation else ""
            named = not annotation and _MODULE_WORD.search(name.id) and self._used_as_module(name.id)
            if "Module" in annotation or "Model" in annotation or named:
                return replace(here, kind=Kind.UNKNOWN, note=f"{name.id} is handed to the constructor of {site.name}")
            return replace(here, note="argument")
        return here

    def _unless_called(self, name: str, value: ast.expr, made: Member) -> Member:
        """What seems to be no module but is called as one (`self.net(…)`) may be a module."""
        if made.kind is not Kind.PLAIN or isinstance(value, (ast.Constant, ast.Lambda)) or not self._called(name):
            return made
        return replace(made, kind=Kind.UNKNOWN, note=f"what self.{name} is made of is not shown")

    def _called(self, name: str) -> bool:
        return any(
            isinstance(node, ast.Call) and dotted(node.func) == f"self.{name}"
            for site in self.facts.lineage
            for node in walk(site.node)
        )

    def _used_as_module(self, name: str) -> bool:
        """True if some method calls `self.name`, reads an attribute of it, or goes over it: a number is used otherwise."""
        attribute = f"self.{name}"
        for site in self.facts.lineage:
            for node in walk(site.node):
                inner = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Attribute) else None
                inner = node.iter if isinstance(node, ast.For) else inner
                if inner is not None and dotted(inner) == attribute:
                    return True
        return False

    def _call_member(self, site: ClassSite, function: FunctionNode, call: ast.Call, depth: int) -> Member:
        module = site.module
        name = qualified(module, call.func)
        end = last(name)
        here = Member("", Kind.PLAIN, "", module.path, call.lineno)
        if isinstance(call.func, ast.Attribute) and call.func.attr in table.RETURNS_SELF and not name.startswith("torch."):
            inner = self.member(site, function, call.func.value, depth + 1)
            return replace(here, note="frozen") if call.func.attr == "requires_grad_" and _is_false(call) else inner
        if name.startswith("torch."):
            return self._torch_member(site, function, call, name, here, depth)
        if name in ("copy.deepcopy", "copy.copy") and call.args:
            return self.member(site, function, call.args[0], depth + 1)
        if name.startswith("torchvision.models."):
            known = end in table.WHOLE_MODELS
            return replace(here, kind=Kind.LEAF if known else Kind.UNKNOWN, note=name if known else f"{name} is not looked into")
        written = dotted(call.func)
        if written and (found := find_class(self.project, module, written)):
            return self._class_member(found, here)
        if function_found := find_function(self.project, module, call.func, call):
            return self._function_member(function_found, here, depth)
        root = family(name) if name else ""
        if root in _NO_MODULES or _HARMLESS_OBJECT.search(end) or external_role(name) is Role.METRIC:
            return here
        if root == "super" or name.startswith("self."):
            return self._own_method(site, name, here, depth)
        if name in _BUILTINS:
            return here
        return replace(here, kind=Kind.UNKNOWN, note=f"{module.text_of(call.func)[:60]}(…) is not part of the project")

    def _own_method(self, site: ClassSite, name: str, here: Member, depth: int) -> Member:
        """`self._make_layer(…)`: what the method returns."""
        method = self.facts.method(name[5:]) if name.startswith("self.") and name.count(".") == 1 else None
        if method is None:
            return here
        return self._function_member((method[0].module, method[1]), here, depth, owner=method[0])

    def _function_member(
        self, found: tuple[SourceModule, FunctionNode], here: Member, depth: int, owner: ClassSite | None = None
    ) -> Member:
        module, function = found
        values = returned(function, module)
        site = owner or ClassSite(module, ast.ClassDef(function.name, [], [], [], []))
        made = [self.member(site, function, v, depth + 1) for v in values]
        if not made:
            return here
        return made[0] if len(made) == 1 else _choice(replace(here, kind=Kind.CHOICE), made)

    def _class_member(self, found: ClassSite, here: Member) -> Member:
        facts = class_facts(self.project, found.module, found.node)
        if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE):
            return replace(here, kind=Kind.MODULE, note=found.name, site=found)
        if facts.is_a(Role.METRIC) or not facts.opaque:
            return here
        return replace(here, kind=Kind.UNKNOWN, note=f"{found.name} has a base outside the project ({facts.opaque[0]})")

    def _torch_member(
        self, site: ClassSite, function: FunctionNode, call: ast.Call, name: str, here: Member, depth: int
    ) -> Member:
        end = last(name)
        if end == "Parameter" or end == "UninitializedParameter":
            fixed = any(k.arg == "requires_grad" and _is_false_node(k.value) for k in call.keywords)
            return here if fixed else replace(here, kind=Kind.PARAMETER, note=end)
        if ".utils." in name and end in table.REPARAMETRISATIONS and call.args:
            return self.member(site, function, call.args[0], depth + 1)
        if not name.startswith("torch.nn.") or name.startswith(("torch.nn.functional.", "torch.nn.init.")):
            if name.startswith(("torch.jit.", "torch.hub.", "torch.compile")):
                return replace(here, kind=Kind.UNKNOWN, note=f"{name}(…) is not looked into")
            return here
        if end in ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"):
            return self._container(site, function, call, end, here, depth)
        if end in table.AFFINE:
            option, default = table.AFFINE[end]
            given = next((k.value for k in call.keywords if k.arg == option), None)
            on = default if given is None else not _is_false_node(given)
            return replace(here, kind=Kind.LEAF if on else Kind.FREE, note=end)
        if end in table.PARAMETRISED:
            return replace(here, kind=Kind.LEAF, note=end)
        if end in table.UNSURE or end.endswith("Parallel") or not end[:1].isupper():
            return replace(here, kind=Kind.UNKNOWN, note=f"{name}(…) is not looked into")
        return replace(here, kind=Kind.FREE, note=end)

    def _container(
        self, site: ClassSite, function: FunctionNode, call: ast.Call, end: str, here: Member, depth: int
    ) -> Member:
        kinds = {"Sequential": Kind.SEQUENCE, "ModuleDict": Kind.DICT, "ParameterDict": Kind.DICT}
        parts: list[Member] = []
        for argument in call.args:
            one = self.member(site, function, argument, depth + 1)
            flat = isinstance(argument, ast.Starred) or end != "Sequential" or one.kind is Kind.DICT
            if flat and one.kind in (Kind.LIST, Kind.DICT) and one.note == "plain":
                parts += one.parts
            elif isinstance(argument, ast.Call) and last(dotted(argument.func)) == "OrderedDict" and argument.args:
                parts += _pairs(self.member(site, function, argument.args[0], depth + 1))
            elif flat and one.kind is Kind.PLAIN:
                parts.append(replace(one, kind=Kind.UNKNOWN, note=f"{site.module.text_of(argument)[:40]} is not written out"))
            else:
                parts.append(one)
        return replace(here, kind=kinds.get(end, Kind.LIST), note=end, parts=tuple(parts))


def _without_aliases(member: Member, by_name: dict[str, Member]) -> Member:
    """A container whose `self.x` elements are the modules of that name; their name begins with `=`."""
    parts = []
    for part in member.parts:
        if part.kind is Kind.ALIAS and part.note in by_name:
            parts.append(replace(by_name[part.note], name=f"={part.note}"))
        else:
            parts.append(_without_aliases(part, by_name))
    return replace(member, parts=tuple(parts)) if parts else member


def _pairs(listed: Member) -> list[Member]:
    """The modules in `[("name", module), …]`."""
    return [pair.parts[-1] for pair in listed.parts if pair.parts]


def _choice(made: Member, found: list[Member]) -> Member:
    """One of several; what is no module drops out (`nn.Linear(…) if x else None` is a Linear where it is there)."""
    real = [f for f in found if f.kind not in (Kind.PLAIN, Kind.FREE)]
    if not real:
        return replace(found[0], note=found[0].note)
    if len(real) == 1:
        return real[0]
    if all(f.kind is Kind.LEAF for f in real):
        return real[0]  # a Linear or a Conv: called alike, used alike
    return replace(made, parts=tuple(replace(f, name=f"({i})") for i, f in enumerate(real)))


def _merged(name: str, values: list[Member]) -> Member:
    """One member for an attribute that is assigned several times: in both arms of a test, or again below."""
    real = [v for v in values if v.kind not in (Kind.PLAIN,)]
    if not real:
        return values[-1]
    if len(real) == 1:
        bare = any(v.kind is Kind.PLAIN and not v.condition for v in values[values.index(real[0]) + 1 :])
        return values[-1] if bare else real[0]
    if len({v.condition for v in real}) == 1:
        return real[-1]  # a subclass replaces what its base has made
    return replace(_choice(replace(real[0], kind=Kind.CHOICE), real), name=name, condition="")


def _builders(site: ClassSite) -> Iterator[FunctionNode]:
    """The constructor and the methods it calls on self."""
    methods = site.methods()
    queue, seen = ["__init__", "__post_init__", "configure_model", "configure_sharded_model"], set()
    while queue:
        name = queue.pop()
        if name in seen or name not in methods:
            continue
        seen.add(name)
        yield methods[name]
        for node in walk(methods[name]):
            if isinstance(node, ast.Call) and dotted(node.func).startswith("self."):
                queue.append(dotted(node.func)[5:])


def set_from_outside(project: Project, name: str) -> bool:
    """True if some file assigns `something.name = …` on another object than self."""

    def search() -> bool:
        pattern = re.compile(rb"(?<!\bself)\." + re.escape(name.encode()) + rb"\s*=(?!=)")
        return any(pattern.search(project.read(path) or b"") for path in project.files_containing(f".{name}".encode()))

    return project.memo(("set from outside", name), search)


def canonical(module: SourceModule, test: ast.expr, function: FunctionNode) -> str:
    """A test as text, with `x` for `self.x`, so that the constructor's test and forward's compare equal."""
    return " ".join(module.text_of(test).replace("self.", "").replace(" is True", "").split())


def _condition(module: SourceModule, node: ast.AST, function: FunctionNode) -> str:
    """The tests round `node` within the function, innermost first; "" where it always runs (loops do not count)."""
    below: ast.AST = node
    found: list[str] = []
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.If):
            text = canonical(module, up.test, function)
            found.append(text if any(below is s for s in up.body) else f"not {text}")
        elif isinstance(up, (ast.Try, ast.While)):
            found.append("…")
        below = up
    return " and ".join(found)


def _in_loop(module: SourceModule, node: ast.AST, function: FunctionNode) -> bool:
    for up in module.ancestors(node):
        if up is function:
            return False
        if isinstance(up, (ast.For, ast.While, ast.AsyncFor)):
            return True
    return False


def _marked(member: Member, repeated: bool) -> Member:
    """The member, and the elements it may bring along, made in a loop."""
    parts = tuple(replace(part, repeated=part.repeated or repeated) for part in member.parts)
    return replace(member, repeated=member.repeated or repeated, parts=parts)


def _literal_name(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    return str(first.value) if isinstance(first, ast.Constant) else ""


def _is_false_node(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_false(call: ast.Call) -> bool:
    return bool(call.args) and _is_false_node(call.args[0])
