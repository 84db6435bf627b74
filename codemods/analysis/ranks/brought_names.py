"""How the other files of a project import a name that a file has forgotten; where none has it, how it is usually imported."""

from __future__ import annotations

import ast
import re

from codemods.analysis.distribution import is_own_test
from codemods.analysis.names import family
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_USUAL = {
    "dist": "import torch.distributed as dist",
    "hvd": "import horovod.torch as hvd",
    "DDP": "from torch.nn.parallel import DistributedDataParallel as DDP",
    "DistributedDataParallel": "from torch.nn.parallel import DistributedDataParallel",
    "DistributedSampler": "from torch.utils.data.distributed import DistributedSampler",
}
_MOST_FILES = 200


@record
class Brought:
    """How another file has the name. code: its import statement. source: the module in it. path: the file, "" for none."""

    code: str
    source: str
    dotted: str
    path: str


def brought_elsewhere(project: Project, module: SourceModule, name: str) -> Brought | None:
    """How the other files of the project import the name, where all that do import the same; the usual way where none has it."""
    word = re.escape(name.encode())
    line = re.compile(rb"(?m)^[ \t]*((?:from[ \t]+[\w.]+[ \t]+)?import[ \t][^\n#;\\]*\b" + word + rb"\b[^\n#;\\]*)")

    def build() -> Brought | None:
        found: list[Brought] = []
        for path in project.files_containing(name.encode())[:_MOST_FILES]:
            data = project.read(path) or b"" if path != module.path and not is_own_test(project, path) else b""
            found += (b for m in line.finditer(data) if (b := _imported(path, m[1].decode("utf-8", "replace"), name)))
        if not found:
            return _usual(project, module, name)
        same = found[:1] if len({b.dotted for b in found}) == 1 else []
        near = [b for b in found if b.path.rpartition("/")[0] == module.path.rpartition("/")[0]]
        return (near or same)[0] if same else None

    return project.keep(("brought elsewhere", module.path, name), build)


def _usual(project: Project, module: SourceModule, name: str) -> Brought | None:
    """What the name is in other projects, in a file that imports PyTorch, where nothing of this one has it."""
    own = any(path.endswith((f"/{name}.py", f"/{name}/__init__.py")) or path == f"{name}.py" for path in project.python_files)
    if own or name not in _USUAL or b"class " + name.encode() in module.data or project.files_defining(name):
        return None
    has_torch = any(family(source) == "torch" for source in module.imported_modules)
    return _imported("", _USUAL[name], name) if has_torch else None


def _imported(path: str, text: str, name: str) -> Brought | None:
    """What an import statement brings under a name; None where it brings nothing under it."""
    try:
        (statement,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return None
    alias = next((a for a in statement.names if (a.asname or a.name) == name), None)
    if alias is None:
        return None
    written = alias.name + (f" as {alias.asname}" if alias.asname else "")
    if isinstance(statement, ast.Import):
        return Brought(f"import {written}", alias.name, alias.name, path)
    source = "." * statement.level + (statement.module or "")
    return Brought(f"from {source} import {written}", source, f"{source}.{alias.name}".replace("..", "."), path)
