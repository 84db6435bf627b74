"""The values that the project gives a setting: defaults, calls, dicts and YAML; so that `if self.use_aux:` can be answered."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from codemods.analysis.class_index import ClassFacts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.files.text_file import JSON_KINDS, TEXT_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

MOST_JSON = 200_000  # characters; what is longer is data
MOST_FILES = 40  # a name in more of them is no setting of one model
_JOBS = (".sh", ".bash", ".slurm", ".sbatch")
_TAGS: dict[str, Callable[[str], object]] = {
    "bool": lambda text: text.lower() in ("true", "yes", "on"), "null": lambda text: None, "str": str, "int": int, "float": float,
}  # fmt: skip


@record
class Values:
    """Every value that the project gives. where: `path:line` of the first."""

    name: str
    found: tuple[object, ...]
    where: str


def values_of(project: Project, facts: ClassFacts, attribute: str) -> Values | None:
    """The values of `self.attribute`, where the constructor takes it from an argument or a configuration; None if open."""
    key = ("setting values", facts.lineage[0].module.path, facts.lineage[0].node.lineno, attribute)
    return project.keep(key, lambda: _values_of(project, facts, attribute))


def _values_of(project: Project, facts: ClassFacts, attribute: str) -> Values | None:
    source = _source(facts, attribute)
    if source is None:
        return None
    name, default, where = source
    given = project.keep(("values given for", name), lambda: _given(project, name))
    if given is None:
        return None
    rows = ([(default.value, where)] if default is not None else []) + given
    found = tuple({(type(v), v): v for v, _ in rows}.values())
    return Values(name, found, rows[-1][1]) if rows else None


def configured_values(project: Project, facts: ClassFacts, node: ast.expr) -> Values | None:
    """The values of `self.config.aux.use`, `self.cfg["use"]` or `self.args.get("use", False)`; None if open.

    The object behind self is one that the constructor was given, whole or a section of it.
    """
    name, default = _passed_on(node), None
    if isinstance(node, ast.Call):
        default = node.args[1] if len(node.args) > 1 else ast.Constant(None)
    owner = _object_of_self(node)
    if not name or not owner or not _is_given_whole(facts, owner) or not isinstance(default, (ast.Constant, type(None))):
        return None
    given = project.memo(("values given for", name), lambda: _given(project, name))
    if given is None:
        return None
    found = tuple({(type(v), v): v for v in ([default.value] if default is not None else []) + [v for v, _ in given]}.values())
    return Values(name, found, given[-1][1]) if given else None


def _object_of_self(node: ast.expr) -> str:
    """`config` of `self.config.aux.use`, "" where the expression is another."""
    steps: list[str] = []
    current = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    while isinstance(current, (ast.Attribute, ast.Subscript)):
        steps.append(current.attr if isinstance(current, ast.Attribute) else "")
        current = current.value
    deep = len(steps) > (0 if isinstance(node, ast.Call) else 1)
    return steps[-1] if deep and isinstance(current, ast.Name) and current.id == "self" else ""


def _is_given_whole(facts: ClassFacts, attribute: str) -> bool:
    """True where the constructor keeps an argument, or a section of one, under the attribute, and nobody stores anything else."""
    stored: list[tuple[ast.expr | None, frozenset[str]]] = []
    for site in facts.lineage:
        for name, method in site.methods().items():
            arguments = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs] if name == "__init__" else []
            for node in walk(method):
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and any(
                    isinstance(t, ast.Attribute) and dotted(t) == f"self.{attribute}" for t in targets
                ):
                    stored.append((node.value, frozenset(a.arg for a in arguments)))
    return len(stored) == 1 and _root(stored[0][0]) in stored[0][1]


def _root(node: ast.expr | None) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _source(facts: ClassFacts, attribute: str) -> tuple[str, ast.Constant | None, str] | None:
    """The name of the setting behind an attribute, its default, and where that stands; None where it is computed."""
    for site in facts.lineage:
        constructor = site.methods().get("__init__")
        given = []
        for method in site.methods().values():
            for node in walk(method):
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    given += [(method, node.value) for t in targets if dotted(t) == f"self.{attribute}"]
        if not given:
            continue
        if constructor is None or len(given) > 1 or given[0][0] is not constructor or given[0][1] is None:
            return None
        value = given[0][1]
        name = _passed_on(value)
        if isinstance(value, ast.Call):  # `cfg.get("use_aux", False)`
            default = value.args[1] if len(value.args) > 1 else None
        else:
            default = defaults(constructor).get(name) if isinstance(value, ast.Name) else None
        where = f"{site.module.path}:{value.lineno}"
        return (name, default if isinstance(default, ast.Constant) else None, where) if name else None
    return None


def _passed_on(value: ast.expr | None) -> str:
    """`use_aux` for `use_aux`, `cfg.model.use_aux`, `cfg["use_aux"]` and `cfg.get("use_aux", …)`."""
    if isinstance(value, (ast.Name, ast.Attribute)):
        return last(dotted(value)) if dotted(value) else ""
    key: ast.expr | None = None
    if isinstance(value, ast.Subscript):
        key = value.slice
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "get" and value.args:
        key = value.args[0]
    return str(key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _given(project: Project, name: str) -> list[tuple[object, str]] | None:
    """(value, place) of everything that is written under the name anywhere; None where something computed is."""
    word = name.encode()
    python = [p for p in project.files_containing(word) if not is_test_file(p)]
    texts = [p for p in project.files_containing(word, kinds=TEXT_KINDS) if not is_test_file(p)]
    if len(python) + len(texts) > MOST_FILES:
        return None
    rows: list[tuple[object, str]] = []
    for path in python:
        module = project.module(path)
        for value in _written(module, name) if module is not None else ():
            if isinstance(value, ast.Constant):
                rows.append((value.value, f"{path}:{value.lineno}"))
            elif _passed_on(value) != name:
                return None
    for path in texts:
        file = project.module(path)
        if not isinstance(file, TextFile):
            continue
        if path.endswith(JSON_KINDS):
            held = _json_rows(file, name)
            if held is None:
                return None
            rows += held
            continue
        for tag, text, line in _scalars(file, name):
            if text.startswith("${"):
                continue
            kind = _TAGS.get(tag.rpartition(":")[2])
            if kind is None:
                return None
            try:
                rows.append((kind(text), f"{path}:{line}"))
            except ValueError:  # an octal number, a number with underscores
                return None
    return rows + list(given_in_jobs(project, name))


def given_in_jobs(project: Project, name: str) -> Iterator[tuple[object, str]]:
    """`--use-aux 0.3` and `model.use_aux=true` in the scripts that start training; an option without a value is a switch."""
    words = re.escape(name).replace("_", "[-_]")
    pattern = re.compile(rf"(?:--|(?<=[\s.+\"']))(?P<name>{words})(?:=|[ \t]+(?!-))?(?P<value>[^\s\\\"']*)")
    for word in {name.encode(), name.replace("_", "-").encode()}:
        for path in project.files_containing(word, kinds=_JOBS):
            text = (project.read(path) or b"").decode("utf-8", "replace")
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                if not text.splitlines()[line - 1].lstrip().startswith("#"):
                    yield _constant(match["value"]), f"{path}:{line}"


def _constant(text: str) -> object:
    if text.lower() in ("", "true", "false"):
        return text.lower() != "false"
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text


def _written(module: SourceModule, name: str) -> Iterator[ast.expr]:
    """Arguments of the name, entries of dicts, options of the command line, items that are stored, fields of classes."""
    for keyword in module.nodes(ast.keyword):
        if keyword.arg == name:
            yield keyword.value
            function = module.function_of(keyword) if isinstance(keyword.value, ast.Name) else None
            handed = defaults(function).get(name) if function is not None else None
            if handed is not None and dotted(keyword.value) == name:
                yield handed  # `def build(width=8): return Net(width=width)`
    for typed in module.nodes(ast.AnnAssign):
        if typed.value is not None and _is_field(module, typed, typed.target, name):
            yield _field_default(typed.value)
    for bare in module.nodes(ast.Assign):
        if any(_is_field(module, bare, target, name) for target in bare.targets):
            yield bare.value
    for node in module.nodes(ast.Dict):
        yield from (v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant) and k.value == name)
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            stored = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == name
            attribute = isinstance(target, ast.Attribute) and target.attr == name and dotted(target.value) != "self"
            if stored or attribute:
                yield assign.value
    for call in module.calls_named("add_argument"):
        names = [str(a.value).lstrip("-").replace("-", "_") for a in call.args if isinstance(a, ast.Constant)]
        if name in names:
            given = {k.arg: k.value for k in call.keywords}
            switch = given.get("action")
            fallback = ast.Constant(isinstance(switch, ast.Constant) and switch.value == "store_false", lineno=call.lineno)
            yield given.get("default", fallback if switch is not None else call)


def _is_field(module: SourceModule, node: ast.stmt, target: ast.expr, name: str) -> bool:
    named = isinstance(target, ast.Name) and target.id == name
    return named and module.class_of(node) is not None and module.function_of(node) is None


def _field_default(value: ast.expr) -> ast.expr:
    """What a field of a class is where nobody gives it: `field(default=…)` included."""
    if isinstance(value, ast.Call) and last(dotted(value.func)) in ("field", "Field"):
        return next((k.value for k in value.keywords if k.arg == "default"), value.args[0] if value.args else value)
    return value


def _json_rows(file: TextFile, name: str) -> list[tuple[object, str]] | None:
    """(value, place) of a key in a JSON file; None where it holds more than a word, or the file is not quite JSON."""
    if len(file.text) > MOST_JSON:
        return []
    if file.json is None:
        return None
    rows: list[tuple[object, str]] = []
    stack = [file.json]
    while stack:
        node = stack.pop()
        stack += [*node.items, *(value for _, value in node.pairs)]
        for key, value in node.pairs:
            if key.value == name:
                if value.kind in ("mapping", "list"):
                    return None
                rows.append((value.value, f"{file.path}:{file.text.count(chr(10), 0, key.start) + 1}"))
    return rows


def _scalars(file: TextFile, name: str) -> Iterator[tuple[str, str, int]]:
    for node in file.yaml_nodes():
        for key, value in node.value if node.id == "mapping" else ():
            if key.id == "scalar" and key.value == name:
                yield (value.tag, str(value.value), value.start_mark.line + 1) if value.id == "scalar" else ("?", "", 0)
