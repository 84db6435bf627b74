"""What an expression in a model's constructor makes: a layer, a container, a module of the project, or something unknown."""

from __future__ import annotations

import ast
import builtins

from codemods.analysis.class_index import ClassFacts, ClassSite, Role, class_facts, external_role, find_class
from codemods.analysis.functions import find_function
from codemods.analysis.model.added_layers import Added, added_by, alternatives
from codemods.analysis.model.config_targets import class_at
from codemods.analysis.model.constructor_arguments import Given, given_for, may_freeze
from codemods.analysis.model.member_kinds import (
    Kind,
    Member,
    choice,
    is_false,
    is_false_node,
    literal_name,
    pairs,
)
from codemods.analysis.model.setting_values import values_of
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.registries import Choices, built_by, makes_one
from codemods.data import torch_modules as table
from codemods.data.external_layers import has_parameters
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace
from codemods.store.project import Project

_MODULE_WORD = lazy(
    r"(^|_)(model|net|network|encoder|decoder|backbone|head|heads|teacher|student|critic|module|generator|discriminator|unet|"
    r"transformer|policy|embedder|embedding|trunk|tower|denoiser|vae|lm|llm|clip|base_model|net_g|net_d)s?$"
)
# Objects of other packages that people keep on a model and that hold no parameters.
_HARMLESS_OBJECT = lazy(
    r"(Tokenizer|Processor|Config|Logger|Writer|Scheduler|Sampler|Extractor|Parser|Path|Metric|Meter|Accuracy|Lock|Queue)\w*$"
)
_NO_MODULES = frozenset(
    {"numpy", "math", "os", "pathlib", "functools", "collections", "random", "time", "logging", "json", "re", "copy",
     "itertools", "operator", "torchmetrics", "scipy", "sklearn", "pandas", "string", "dataclasses", "typing", "enum",
     "matplotlib", "PIL", "cv2", "yaml", "omegaconf", "warnings", "contextlib", "types", "inspect", "threading",
     "tokenizers", "sentencepiece", "nltk", "wandb", "lightning_utilities"}
)  # fmt: skip
# Metrics that judge by a network of their own.
_HOLDS_A_NETWORK = lazy(r"Frechet|Inception|LearnedPerceptual|CLIPScore|CLIPImage|BERTScore|InfoLM|PerceptualPath")
METRIC = "metric"  # the note of a torchmetrics object: called like a module, and without parameters
_BUILTINS = frozenset(dir(builtins))


class Maker:
    """Reads expressions of the constructors of one class and its ancestors."""

    def __init__(self, project: Project, facts: ClassFacts, asked: set[tuple[str, str]] | None = None) -> None:
        self.project, self.facts = project, facts
        self.asked = set() if asked is None else asked  # constructor arguments that are being followed

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
            return choice(made(Kind.CHOICE), [self.member(site, function, v, depth + 1) for v in (value.body, value.orelse)])
        if isinstance(value, ast.BoolOp):
            return choice(made(Kind.CHOICE), [self.member(site, function, v, depth + 1) for v in value.values])
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
            return found[0] if len(found) == 1 else choice(replace(here, kind=Kind.CHOICE), found)
        parts = [p for f in found for p in f.parts]
        layers: list[Added] = []
        for extra in added:
            one = self.member(site, function, extra, depth + 1)
            made = one.parts if one.kind is Kind.LIST and one.note == "plain" else (one,)
            layers.append(added_by(module, function, extra, made))
        return replace(here, kind=Kind.LIST, note="plain", parts=(*parts, *alternatives(layers)))

    def _argument(self, site: ClassSite, function: FunctionNode, name: ast.Name, here: Member) -> Member:
        """A parameter of the constructor: a module where its annotation or its name says so."""
        args = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        arg = next((a for a in args if a.arg == name.id), None)
        if arg is not None:
            annotation = site.module.text_of(arg.annotation) if arg.annotation else ""
            if function.name == "__init__" and (made := self._handed_over(site, name.id, arg, here)) is not None:
                return made
            named = not annotation and _MODULE_WORD.search(name.id) and self._used_as_module(name.id)
            if self._is_a_word(site, arg.arg):
                return replace(here, note="argument")
            if "Module" in annotation or "Model" in annotation or named:
                return replace(here, kind=Kind.UNKNOWN, note=f"{name.id} is handed to the constructor of {site.name}")
            return replace(here, note="argument")
        return here

    def _handed_over(self, site: ClassSite, name: str, arg: ast.arg, here: Member) -> Member | None:
        """What the project's own code (or its configurations) hands to the constructor; else the class of the annotation."""
        given = given_for(self.project, self.facts, site, name)
        if given is not None and self._used_as_module(name) and (key := (site.name, name)) not in self.asked:
            self.asked.add(key)
            made = [self._given(one, here) for one in given]
            self.asked.discard(key)
            modules = [m for m in made if m.kind is not Kind.PLAIN]
            if any(self._holds_itself(m) for m in modules):
                return replace(here, kind=Kind.UNKNOWN, note=f"{site.name} is handed one of its kind")
            named = next((g for g in given if g.name), None)
            if not modules and named is not None:
                return replace(here, kind=Kind.UNKNOWN, note=f"{named.name} ({named.path}:{named.line}) is no nn.Module itself")
            if modules and not any(m.kind in (Kind.UNKNOWN, Kind.ALIAS, Kind.COPY) for m in modules):
                in_yaml = sorted({g.path for g in given if g.name})
                assumed = f"what {in_yaml[0]} gives for {name} of {site.name} is what is trained" if in_yaml else ""
                one = choice(replace(here, kind=Kind.CHOICE), modules)
                return replace(one, assumed=one.assumed or assumed)
        written = dotted(arg.annotation) if arg.annotation is not None else ""
        declared = find_class(self.project, site.module, written) if written else None
        if declared is None or not self._used_as_module(name):
            return None
        made_of = self._class_member(declared, here)
        assumed = f"{name} of {site.name} is a {declared.name} itself, as its annotation says, and all of it is trained"
        return replace(made_of, assumed=assumed) if made_of.kind is Kind.MODULE else None

    def _holds_itself(self, member: Member) -> bool:
        """True for a module of this class or of one above it, also among the choices: nested, it would never end."""
        own = [site.node for site in self.facts.lineage]
        return any(m.site is not None and any(m.site.node is node for node in own) for m in (member, *member.parts))

    def _given(self, given: Given, here: Member) -> Member:
        if given.module is None:
            found = class_at(self.project, given.name)
            if found is not None:
                return self._class_member(found, here)
            return replace(here, kind=Kind.UNKNOWN, note=f"{given.name} ({given.path}) is not part of the project")
        module, value = given.module, given.value
        assert value is not None
        if may_freeze(module, given.function):
            return replace(here, kind=Kind.UNKNOWN, note=f"{module.path}:{given.line} may freeze what it hands over")
        owner = module.class_of(value)
        home = ClassSite(module, owner if owner is not None else ast.ClassDef("(module)", [], [], [], []))
        inner = self if owner is None else Maker(self.project, class_facts(self.project, module, owner), self.asked)
        if given.function is None:
            return inner._at_top(home, value)
        return inner.member(home, given.function, value)

    def _at_top(self, home: ClassSite, value: ast.expr) -> Member:
        """What an expression at the top level of a file makes: a call, or a name that is bound once."""
        everything = ast.FunctionDef("(module)", ast.arguments([], [], None, [], [], None, []), home.module.tree.body, [])
        return self.member(home, everything, value)

    def _is_a_word(self, site: ClassSite, name: str) -> bool:
        """True for an argument that the project gives as text or numbers everywhere: no module, whatever it is called."""
        values = values_of(self.project, self.facts, name) if site in self.facts.lineage else None
        return values is not None and all(isinstance(v, (str, int, float)) for v in values.found)

    def _used_as_module(self, name: str) -> bool:
        """True if some method calls `self.name`, reads an attribute of it, or goes over it: a number is used otherwise."""
        kept = {f"self.{name}"}
        for site in self.facts.lineage:
            for node in walk(site.node):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
                    kept |= {dotted(target) for target in node.targets} - {""}
        for site in self.facts.lineage:
            for node in walk(site.node):
                inner = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Attribute) else None
                inner = node.iter if isinstance(node, ast.For) else inner
                if inner is not None and dotted(inner).startswith("self.") and dotted(inner) in kept:
                    return True
        return False

    def _call_member(self, site: ClassSite, function: FunctionNode, call: ast.Call, depth: int) -> Member:
        module = site.module
        name = qualified(module, call.func)
        end = last(name)
        here = Member("", Kind.PLAIN, "", module.path, call.lineno)
        if isinstance(call.func, ast.Attribute) and call.func.attr in table.RETURNS_SELF and not name.startswith("torch."):
            inner = self.member(site, function, call.func.value, depth + 1)
            return replace(here, note="frozen") if call.func.attr == "requires_grad_" and is_false(call) else inner
        if name.startswith("torch."):
            return self._torch_member(site, function, call, name, here, depth)
        if name in ("copy.deepcopy", "copy.copy") and call.args:
            inner = self.member(site, function, call.args[0], depth + 1)
            return replace(inner, kind=Kind.COPY) if inner.kind is Kind.ALIAS and end == "deepcopy" else inner
        if name.startswith("torchvision.models."):
            known = end in table.WHOLE_MODELS
            return replace(here, kind=Kind.LEAF if known else Kind.UNKNOWN, note=name if known else f"{name} is not looked into")
        if (holds := has_parameters(name)) is not None:
            return replace(here, kind=Kind.LEAF if holds else Kind.FREE, note=name)
        written = dotted(call.func)
        if written and (found := find_class(self.project, module, written)):
            return self._class_member(found, here)
        head, _, method = written.rpartition(".")
        if head and (found := find_class(self.project, module, head)):
            own = class_facts(self.project, found.module, found.node).method(method)
            if makes_one(method):
                return self._class_member(found, here)
            if own is not None:
                return self._function_member((own[0].module, own[1]), here, depth, owner=own[0])
        if function_found := find_function(self.project, module, call.func, call):
            return self._function_member(function_found, here, depth)
        if choices := built_by(self.project, module, call):
            return self._one_of(choices, here)
        if isinstance(call.func, ast.Name) and (one := self._by_local_name(site, function, call, call.func, here, depth)):
            return one
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "pop") and literal_name(call):
            return replace(here, note="argument")  # `config.get("momentum", None)`: a module only where it is used as one
        root = family(name) if name else ""
        if external_role(name) is Role.METRIC and not _HOLDS_A_NETWORK.search(name):
            return replace(here, note=METRIC)
        if root in _NO_MODULES or _HARMLESS_OBJECT.search(end):
            return here
        if root == "super" or name.startswith("self."):
            return self._own_method(site, name, here, depth)
        if name in _BUILTINS:
            return here
        return replace(here, kind=Kind.UNKNOWN, note=f"{module.text_of(call.func)[:60]}(…) is not part of the project")

    def _by_local_name(
        self, site: ClassSite, function: FunctionNode, call: ast.Call, name: ast.Name, here: Member, depth: int
    ) -> Member | None:
        """`block = First if wide else Second`, `norm = spectral_norm if spectral else weight_norm`, called further down."""
        assigns = [n for n in walk(function) if isinstance(n, ast.Assign)]
        values = [a.value for a in assigns if any(isinstance(t, ast.Name) and t.id == name.id for t in a.targets)]
        sides = [s for v in values for s in ((v.body, v.orelse) if isinstance(v, ast.IfExp) else (v,))]
        made: list[Member] = []
        for side in sides:
            known = qualified(site.module, side)
            if known.startswith("torch.nn.utils.") and last(known) in table.REPARAMETRISATIONS and call.args:
                made.append(self.member(site, function, call.args[0], depth + 1))
            elif dotted(side) and (found := find_class(self.project, site.module, dotted(side))):
                made.append(self._class_member(found, here))
            else:
                return None
        return choice(replace(here, kind=Kind.CHOICE), made) if made else None

    def _one_of(self, choices: Choices, here: Member) -> Member:
        """One of the classes of a registry; where others may be registered, that is taken for granted."""
        made = [self._class_member(site, here) for site in choices.sites]
        assumed = choices.assumed or (f"no other package registers a class in {choices.table}" if choices.open else "")
        if any(m.kind is Kind.PLAIN for m in made) and any(m.kind is not Kind.PLAIN for m in made):
            return replace(here, kind=Kind.UNKNOWN, note=f"{choices.table} holds modules and other classes")
        return replace(choice(replace(here, kind=Kind.CHOICE), made), assumed=assumed)

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
        return made[0] if len(made) == 1 else choice(replace(here, kind=Kind.CHOICE), made)

    def _class_member(self, found: ClassSite, here: Member) -> Member:
        facts = class_facts(self.project, found.module, found.node)
        if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE):
            return replace(here, kind=Kind.MODULE, note=found.name, site=found)
        if facts.is_a(Role.METRIC):
            return replace(here, note=METRIC)
        if not facts.opaque:
            return here
        return replace(here, kind=Kind.UNKNOWN, note=f"{found.name} has a base outside the project ({facts.opaque[0]})")

    def _torch_member(
        self, site: ClassSite, function: FunctionNode, call: ast.Call, name: str, here: Member, depth: int
    ) -> Member:
        end = last(name)
        if end == "Parameter" or end == "UninitializedParameter":
            fixed = any(k.arg == "requires_grad" and is_false_node(k.value) for k in call.keywords)
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
            on = default if given is None else not is_false_node(given)
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
                parts += pairs(self.member(site, function, argument.args[0], depth + 1))
            elif flat and one.kind is Kind.PLAIN:
                parts.append(replace(one, kind=Kind.UNKNOWN, note=f"{site.module.text_of(argument)[:40]} is not written out"))
            else:
                parts.append(one)
        return replace(here, kind=kinds.get(end, Kind.LIST), note=end, parts=tuple(parts))
