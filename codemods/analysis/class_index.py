"""Class -> bases, across files: is it a LightningModule, a Callback, an nn.Module? Followed only where somebody asks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Container, Iterator
from enum import Enum
from itertools import islice

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, family, is_from, last, qualified
from codemods.analysis.package_names import given_by_package
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project


class Role(Enum):
    """What a framework takes a class for."""

    LIGHTNING_MODULE = "LightningModule"
    LIGHTNING_DATA_MODULE = "LightningDataModule"
    LIGHTNING_CALLBACK = "Callback"
    METRIC = "torchmetrics.Metric"
    NN_MODULE = "nn.Module"
    HF_TRAINER = "transformers.Trainer"
    HF_CALLBACK = "TrainerCallback"
    HF_ARGUMENTS = "TrainingArguments"
    DATASET = "Dataset"


# Packages whose base classes are known not to touch logging, hooks or ranks of a Lightning class.
HARMLESS_FAMILIES = frozenset(
    {"abc", "typing", "typing_extensions", "torch", "torchmetrics", "huggingface_hub", "enum", "dataclasses", "collections",
     "object", "Generic", "Protocol", "Exception", "dict", "list", "argparse", "threading", "logging"}
)  # fmt: skip

_METRIC_NAMES = frozenset({"Metric", "MetricCollection", "MetricTracker"})


def external_role(name: str) -> Role | None:
    """The role of a framework's own class, by its qualified name."""
    end, root = last(name), family(name)
    if root == "lightning":
        if end == "LightningModule":
            return Role.LIGHTNING_MODULE
        if end == "LightningDataModule":
            return Role.LIGHTNING_DATA_MODULE
        if end == "Callback" or ".callbacks" in name:
            return Role.LIGHTNING_CALLBACK
        if ".metrics." in name:  # torchmetrics lived here until Lightning 1.4
            return Role.METRIC
    if root == "torchmetrics" and end[:1].isupper():
        return Role.METRIC
    if root == "torch":
        if name.startswith("torch.nn.") and end[:1].isupper() and not end.endswith("Parallel"):
            return Role.NN_MODULE
        if name.startswith("torch.utils.data") and end.endswith("Dataset"):
            return Role.DATASET
    if root in ("transformers", "trl", "peft", "sentence_transformers"):
        if end == "TrainerCallback" or end.endswith("Callback"):
            return Role.HF_CALLBACK
        if end.endswith("TrainingArguments") or (root == "trl" and end.endswith("Config")):
            return Role.HF_ARGUMENTS
        if end.endswith("Trainer"):
            return Role.HF_TRAINER
        if end.startswith("PreTrained") or end.endswith("Model") or "For" in end:
            return Role.NN_MODULE
    return None


FEW_NAMES = 8  # heirs whose own heirs are looked for one by one
MANY_FILES = 40  # as many heirs are read to see what one call may run; it costs about 5 ms a file


@record
class ClassSite:
    """A class definition and the file it stands in."""

    module: SourceModule
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    def methods(self) -> dict[str, FunctionNode]:
        """Methods by name, the last definition winning, as at run time."""
        return self.module.methods_of(self.node)


@record
class ClassFacts:
    """What is known of a class.

    lineage: the class itself, then its project ancestors, nearest first. external: qualified names of bases outside the
    project. unresolved: bases that lead nowhere; with one of them nothing about the class is certain.
    """

    lineage: tuple[ClassSite, ...]
    external: tuple[str, ...]
    unresolved: tuple[str, ...]

    def is_a(self, role: Role) -> bool:
        return any(external_role(name) is role for name in self.external)

    @property
    def opaque(self) -> tuple[str, ...]:
        """Bases that might override anything: unresolved ones, and those of packages nobody here knows."""
        known = [n for n in self.external if external_role(n) is None and family(n) not in HARMLESS_FAMILIES]
        return (*self.unresolved, *known)

    def method(self, name: str) -> tuple[ClassSite, FunctionNode] | None:
        """The definition that `self.name` finds in the project, or None where only a framework defines it."""
        for site in self.lineage:
            if name in (methods := site.methods()):
                return site, methods[name]
        return None


def find_class(project: Project, module: SourceModule, name: str) -> ClassSite | None:
    """The project class that the dotted `name` means in `module`: local, imported, or re-exported by a package."""
    return project.memo(("class named", module.path, name), lambda: _find_class(project, module, name, set()))


def _find_class(project: Project, module: SourceModule, name: str, seen: set[tuple[str, str]]) -> ClassSite | None:
    """No name is looked up in a file twice: packages that import all of each other would be walked without end."""
    if (module.path, name) in seen:
        return None
    seen.add((module.path, name))
    root, _, rest = name.partition(".")
    if not rest and (local := local_class(module, root)):
        return ClassSite(module, local)
    for found in module.imports.get(root, ()):
        target = found.dotted if not rest else f"{found.dotted}.{rest}"
        if site := _follow(project, target, module.path, seen):
            return site
    if not rest:
        for source in module.nodes(ast.ImportFrom):
            if any(a.name == "*" for a in source.names):
                star = "." * source.level + (source.module or "")
                dot = "" if star.endswith(".") else "."
                if site := _follow(project, f"{star}{dot}{root}", module.path, seen):
                    return site
    return None


def _follow(project: Project, target: str, importer: str, seen: set[tuple[str, str]]) -> ClassSite | None:
    resolved = project.resolve(target, importer)
    if resolved is not None and not resolved.rest:
        resolved = given_by_package(project, resolved)
    if resolved is None:
        return None
    data = project.read(resolved.path) or b""
    if resolved.rest[0].encode() not in data and b"import *" not in data:
        return None  # told from the bytes: packages that import all of each other would be parsed whole
    inner = project.module(resolved.path)
    return _find_class(project, inner, ".".join(resolved.rest), seen) if inner else None


def local_class(module: SourceModule, name: str) -> ast.ClassDef | None:
    """The class of that name at the module's top level (also under its `if` and `try`), the last one winning."""
    tops = [c for c in module.nodes(ast.ClassDef) if c.name == name]
    level = [c for c in tops if not module.function_of(c) and not module.class_of(c)]
    return level[-1] if level else None


def class_facts(project: Project, module: SourceModule, node: ast.ClassDef) -> ClassFacts:
    """Lineage and roots of a class, remembered for the project."""
    return project.memo(("class facts", module.path, node.lineno), lambda: _facts(project, ClassSite(module, node)))


def _facts(project: Project, start: ClassSite) -> ClassFacts:
    lineage: list[ClassSite] = []
    external: list[str] = []
    unresolved: list[str] = []
    seen: set[tuple[str, int]] = set()
    queue = [start]
    while queue:
        site = queue.pop(0)
        key = (site.module.path, site.node.lineno)
        if key in seen:
            continue
        seen.add(key)
        lineage.append(site)
        for base in site.node.bases:
            expression = base.value if isinstance(base, ast.Subscript) else base
            written = dotted(expression)
            if not written:
                unresolved.append(site.module.text_of(base))
            elif (found := find_class(project, site.module, written)) and found.node is not site.node:
                queue.append(found)  # `class Trainer(Trainer)`: the base is what is imported by the name
            else:
                name = qualified(site.module, expression)
                builtin = family(name) in HARMLESS_FAMILIES or name in _BUILTIN_BASES
                if _is_imported(site.module, written) and not name.startswith("."):
                    external.append(name)
                elif brought := _by_star(project, site.module, written):
                    external.append(brought)
                elif not builtin:
                    unresolved.append(written)
    return ClassFacts(tuple(lineage), tuple(external), tuple(unresolved))


def _by_star(project: Project, module: SourceModule, written: str, depth: int = 2) -> str:
    """`lightning.LightningModule` for `pl.LightningModule`, where `from helpers import *` brings `pl` along; "" without one."""
    root, _, rest = written.partition(".")
    for star in module.imports.get("*", ()) if not root.startswith("_") else ():
        resolved = project.resolve(replace(star, name=root).dotted, module.path)
        inner = project.module(resolved.path) if resolved is not None and resolved.path != module.path else None
        if inner is None or inner.holds(b"__all__"):
            continue
        if found := inner.imports.get(root):
            name = found[0].dotted
            return f"{name}.{rest}" if rest and not name.startswith(".") else "" if rest else name
        if depth > 0 and (name := _by_star(project, inner, written, depth - 1)):
            return name
    return ""


_BUILTIN_BASES = frozenset(
    {"object", "type", "Exception", "BaseException", "dict", "list", "set", "str", "int", "float", "tuple"}
)  # fmt: skip


def _is_imported(module: SourceModule, name: str) -> bool:
    return name.partition(".")[0] in module.imports


def role_of_method(project: Project, module: SourceModule, node: ast.AST) -> tuple[ClassFacts, FunctionNode] | None:
    """The facts of the class and the method that `node` stands in; None outside a class."""
    place = module.method_of(node)
    return (class_facts(project, module, place[0]), place[1]) if place else None


def subclasses(project: Project, site: ClassSite) -> tuple[ClassSite, ...]:
    """Project classes that derive from `site`, directly or not; those of the repository's own tests are left out.

    The headers of all classes are read from the bytes first, so that only files with a likely heir are parsed.
    """
    return _subclasses(project, site, "", sys.maxsize) or ()


def first_subclasses(project: Project, site: ClassSite, most: int) -> tuple[ClassSite, ...]:
    """The first classes below `site`, of the first files with a likely heir: a base class of half a repository has hundreds."""

    def build() -> tuple[ClassSite, ...]:
        heirs, found = _likely_heirs(project, site), list[ClassSite]()
        paths = (p for p in sorted(heirs) if is_test_file(site.module.path) or not is_test_file(p))
        for path in islice(paths, MANY_FILES):
            module = project.module(path)
            found += _deriving(project, site, module, heirs[path]) if module is not None else ()
            if len(found) >= most:
                break
        return tuple(found[:most])

    return project.memo(("first subclasses", site.module.path, site.node.lineno, most), build)


def overriding(project: Project, site: ClassSite, name: str) -> tuple[ClassSite, ...] | None:
    """The classes below `site` that define the method `name` anew; None where there are too many to read.

    A base class of half a repository is no question for one call: its heirs would all be parsed.
    """
    below = _subclasses(project, site, f"def {name}(", MANY_FILES)
    return None if below is None else tuple(s for s in below if name in s.methods())


def _subclasses(project: Project, site: ClassSite, mentioning: str, most: int) -> tuple[ClassSite, ...] | None:
    def build() -> tuple[ClassSite, ...] | None:
        mentioned = set(project.files_containing(mentioning.encode())) if mentioning else None
        if mentioned is not None and mentioned <= {site.module.path}:  # as with most methods: no header need be read
            return tuple(_deriving(project, site, site.module, _heirs_beside(site))) if mentioned else ()
        heirs = _likely_heirs(project, site)
        paths = set(heirs) if mentioned is None else mentioned.intersection(heirs)
        if not is_test_file(site.module.path):
            paths = {p for p in paths if not is_test_file(p)}
        if len(paths) > most:
            return None
        modules = ((project.module(path), heirs[path]) for path in sorted(paths))
        return tuple(s for module, names in modules if module is not None for s in _deriving(project, site, module, names))

    return project.memo(("subclasses", site.module.path, site.node.lineno, mentioning), build)


def _deriving(project: Project, site: ClassSite, module: SourceModule, names: Container[str]) -> Iterator[ClassSite]:
    """The classes of these names in a file that derive from `site`."""
    for node in module.nodes(ast.ClassDef):
        if node.name in names and node is not site.node:
            if any(s.node is site.node for s in class_facts(project, module, node).lineage):
                yield ClassSite(module, node)


def _heirs_beside(site: ClassSite) -> set[str]:
    """The names of the classes in its own file that may derive from `site`."""
    names, size = {site.name}, 0
    while size < len(names):
        size = len(names)
        names |= {c.name for c in site.module.nodes(ast.ClassDef) if any(last(dotted(base)) in names for base in c.bases)}
    return names


def _likely_heirs(project: Project, site: ClassSite) -> dict[str, set[str]]:
    """Path -> names of the classes that may derive from `site` by what their headers say, aliases of imports included."""
    return project.keep(("likely heirs", site.name), lambda: _heirs_of(project, site))


def has_many_heirs(project: Project, site: ClassSite) -> bool:
    """True where the headers of more files than one reads speak of heirs of the class; nothing is parsed for it."""
    return _has_many(project, site.name) or len(_likely_heirs(project, site)) > MANY_FILES


def _has_many(project: Project, name: str) -> bool:
    """True where that many files name it as a base themselves: the first of them answer for all."""

    def build() -> bool:
        files: set[str] = set()
        for path, _ in project.headers_naming(name):
            files.add(path)
            if len(files) > MANY_FILES:
                return True
        return False

    return project.keep(("named as a base by many", name), build)


def _heirs_of(project: Project, site: ClassSite) -> dict[str, set[str]]:
    seen, queue = {site.name}, [site.name, *project.aliases_of(site.name)]
    out: dict[str, set[str]] = {}
    few = not _has_many(project, site.name)
    while queue:
        base = queue.pop()
        few = few and len(seen) <= FEW_NAMES
        for path, name in project.headers_naming(base, few=few):
            out.setdefault(path, set()).add(name)
            if name not in seen:
                seen.add(name)
                queue.append(name)
    return out


def is_lightning(name: str) -> bool:
    return is_from(name, "lightning")
