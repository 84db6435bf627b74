"""Seeds that a run sets only where an option is given: `if args.seed is not None`, wherever the program has its parser."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.literals import is_none
from codemods.analysis.loading.same_program import reached
from codemods.analysis.loading.seeds import Seed
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_COMMANDS = (".sh", ".bash", ".md", ".slurm", ".sbatch", ".yaml", ".yml", ".json", ".txt", ".ipynb")
_FROM_FIELDS = (b"HfArgumentParser", b"tyro")  # they make an option of each field of a dataclass


def option_of(project: Project, seed: Seed) -> str:
    """`--seed` for a seed under `if args.seed is not None:` whose option has no default, and that no command gives."""
    module = seed.module
    tests = [up.test for up in module.ancestors(seed.call) if isinstance(up, (ast.If, ast.IfExp))]
    names = {n.attr for test in tests for n in walk(test) if isinstance(n, ast.Attribute)}
    for name in sorted(names):
        found = list(_options(project, module, name))
        if found and all(empty for _, empty in found) and not _is_given(project, module.path, found[0][0]):
            return found[0][0]
    return ""


def _options(project: Project, module: SourceModule, name: str) -> Iterator[tuple[str, bool]]:
    """(option, whether it is None or False where nobody gives it) for each place in the program that defines it."""
    words = (name.encode(), name.replace("_", "-").encode())
    for path in sorted(reached(project, module.path)):
        other = project.module(path) if any(word in (project.read(path) or b"") for word in words) else None
        if other is None:
            continue
        for call in other.calls_named("add_argument"):
            written = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            option = next((w for w in written if w.startswith("--") and w[2:].replace("-", "_") == name), "")
            if option:
                yield option, _is_left_empty(call)
        if any(w in m for w in _FROM_FIELDS for m in (module.data, other.data)):
            yield from ((f"--{name}", empty) for empty in _fields(other, name))


def _is_left_empty(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    if (action := given.get("action")) is not None:
        return isinstance(action, ast.Constant) and action.value == "store_true" and "default" not in given
    default = given.get("default")
    return "required" not in given and (default is None or is_none(default))


def _fields(module: SourceModule, name: str) -> Iterator[bool]:
    """Whether a field of that name of a class is None at first."""
    for node in module.nodes(ast.AnnAssign):
        if dotted(node.target) != name or not isinstance(module.parent(node), ast.ClassDef):
            continue
        value = node.value
        if isinstance(value, ast.Call) and last(dotted(value.func)) == "field":
            value = next((k.value for k in value.keywords if k.arg == "default"), None)
        yield value is not None and is_none(value)


def _is_given(project: Project, path: str, option: str) -> bool:
    """True where a text that names the script gives the option, and for one that an import alone leads to, any text."""
    asked = re.compile(rb"(?<![\w-])" + re.escape(option.encode()) + rb"(?![\w-])")
    name = path.rpartition("/")[2].encode()
    module = project.module(path)
    script = module is not None and module.holds(b"__main__")
    texts = (project.read(p) or b"" for p in project.files_containing(option.encode(), kinds=_COMMANDS))
    return any(asked.search(text) and (not script or name in text) for text in texts)
