"""A file or folder that rank 0 makes and every rank uses further down in the same function, without waiting in between."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, split_of
from codemods.analysis.ranks.reach import in_turn
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule, walk

# Position of the path among the arguments; -1 is the receiver.
_WRITES = {
    "torch.save": 1, "numpy.save": 0, "numpy.savez": 0, "numpy.savetxt": 0, "numpy.savez_compressed": 0, "os.makedirs": 0,
    "os.mkdir": 0, "shutil.copy": 1, "shutil.copyfile": 1, "shutil.copytree": 1, "shutil.move": 1, "os.rename": 1,
    "os.replace": 1, "urllib.request.urlretrieve": 1, "torch.hub.download_url_to_file": 1, "safetensors.torch.save_file": 1,
    "joblib.dump": 1, "soundfile.write": 0,
}  # fmt: skip
_WRITE_METHODS = {
    "write_text": -1, "write_bytes": -1, "mkdir": -1, "to_csv": 0, "to_json": 0, "to_parquet": 0, "to_pickle": 0,
    "save_pretrained": 0, "save_to_disk": 0, "savefig": 0, "extractall": 0,
}  # fmt: skip
_READS = {
    "torch.load": 0, "numpy.load": 0, "numpy.loadtxt": 0, "os.listdir": 0, "os.scandir": 0, "os.walk": 0, "glob.glob": 0,
    "pandas.read_csv": 0, "pandas.read_parquet": 0, "pandas.read_json": 0, "pandas.read_pickle": 0, "datasets.load_from_disk": 0,
    "datasets.load_dataset": 0, "safetensors.torch.load_file": 0, "joblib.load": 0, "os.path.getsize": 0,
    "torchvision.datasets.ImageFolder": 0,
}  # fmt: skip
_READ_METHODS = {
    "read_text": -1, "read_bytes": -1, "iterdir": -1, "glob": -1, "rglob": -1, "from_pretrained": 0, "load_from_disk": 0,
}  # fmt: skip
_LISTS = frozenset({"listdir", "scandir", "iterdir"})
_FOLDERS = frozenset({"makedirs", "mkdir"})
_WRITING = frozenset({"open", *_WRITE_METHODS, *map(last, _WRITES)})


@dataclass(frozen=True, slots=True)
class Handover:
    """write: the call under the guard. use: the call that every rank makes. path: the path as it is written."""

    guard: ast.If
    ranks: Ranks
    write: ast.Call
    use: ast.Call
    path: str
    function: FunctionNode | None


def handovers(project: Project, module: SourceModule) -> Iterator[Handover]:
    """The first use of each path behind each guard."""
    for guard, written in _writing_branches(module).items():
        split = split_of(module, guard.test, project)
        if split is None or split.true not in (Ranks.ZERO, Ranks.LOCAL_ZERO):
            continue
        if ranks_at(module, guard, project=project).some or in_turn(module, guard):
            continue
        if found := _first_use(project, module, guard, split.true, written):
            yield found


def _writing_branches(module: SourceModule) -> dict[ast.If, list[tuple[ast.Call, ast.expr]]]:
    """The `if` statements whose first branch writes, in source order, with the calls and the paths; few of all there are."""
    found: dict[ast.If, list[tuple[ast.Call, ast.expr]]] = {}
    renamed = {name for name, found in module.imports.items() if any(i.dotted in _WRITES for i in found)}
    for call in module.nodes(ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        path = written_path(module, call) if name in _WRITING or name in renamed else None
        below: ast.AST = call
        for up in module.ancestors(call) if path is not None else ():
            if isinstance(up, ast.If) and any(s is below for s in up.body) and path is not None:
                found.setdefault(up, []).append((call, path))
            below = up
    return dict(sorted(found.items(), key=lambda item: (item[0].lineno, item[0].col_offset)))


def _first_use(
    project: Project, module: SourceModule, guard: ast.If, ranks: Ranks, written: list[tuple[ast.Call, ast.expr]]
) -> Handover | None:
    """The first use behind the guard, unless a collective or a new value of a name in the path stands before it."""
    function = module.function_of(guard)
    block = module.block_of(guard)
    for statement in block[block.index(guard) + 1 :]:
        for node in walk(statement):
            if not isinstance(node, (ast.Call, ast.Attribute)) or module.function_of(node) is not function:
                continue
            if collective_at(module, node, project):
                return None
            if not isinstance(node, ast.Call):
                continue
            if reached_by(project, module, node):
                return None
            for write, path in written:
                if _uses(module, node, write, path, function) and not ranks_at(module, node, project=project).some:
                    return Handover(guard, ranks, write, node, ast.unparse(path), function)
        stored = {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        written = [(w, p) for w, p in written if not {n.id for n in walk(p) if isinstance(n, ast.Name)} & stored]
    return None


def written_path(module: SourceModule, call: ast.Call) -> ast.expr | None:
    """The path that a call writes or creates, None where it does neither or the path names the rank."""
    path = _open_path(module, call, writing=True) or _argument(module, call, _WRITES, _WRITE_METHODS)
    if path is None or isinstance(path, ast.Constant) or not any(isinstance(n, ast.Name) for n in walk(path)):
        return path if isinstance(path, ast.Constant) and isinstance(path.value, str) else None
    words = {n.id for n in walk(path) if isinstance(n, ast.Name)} | {n.attr for n in walk(path) if isinstance(n, ast.Attribute)}
    return None if any("rank" in word for word in words) else path


def _argument(
    module: SourceModule, call: ast.Call, functions: dict[str, int], methods: dict[str, int]
) -> ast.expr | None:
    name = qualified(module, call.func)
    position = functions.get(name.replace("numpy.core.", "numpy."))
    if position is None and isinstance(call.func, ast.Attribute):
        position = methods.get(call.func.attr)
    if position is None:
        return None
    if position == -1:
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    if len(call.args) > position and not any(isinstance(a, ast.Starred) for a in call.args):
        return call.args[position]
    return next((k.value for k in call.keywords if k.arg in ("path", "name", "file", "f", "save_directory")), None)


def _open_path(module: SourceModule, call: ast.Call, *, writing: bool) -> ast.expr | None:
    """The path of `open(path, mode)` or `path.open(mode)`."""
    name = dotted(call.func)
    if last(name) != "open" or name.startswith(("Image.", "PIL.", "wave.", "webbrowser.", "tarfile.", "zipfile.")):
        return None
    builtin = name in ("open", "io.open")
    modes = call.args[1:2] if builtin else call.args[:1]
    mode = next((k.value for k in call.keywords if k.arg == "mode"), modes[0] if modes else None)
    text = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else "r" if mode is None else ""
    if not text or writing is not any(letter in text for letter in "wax"):
        return None
    if builtin:
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _uses(module: SourceModule, call: ast.Call, write: ast.Call, path: ast.expr, function: FunctionNode | None) -> bool:
    """True if the call reads, lists or loads what was written, or lists or writes into the folder that was made."""
    end = last(dotted(call.func))
    if last(dotted(write.func)) in _FOLDERS:  # what a file in it holds is not of this write
        used = _open_path(module, call, writing=True) or _argument(module, call, _WRITES, _WRITE_METHODS)
        if end in _LISTS:
            used = _argument(module, call, _READS, _READ_METHODS)
        elif end in _FOLDERS:
            return False
    else:
        used = _open_path(module, call, writing=False) or _argument(module, call, _READS, _READ_METHODS)
    return used is not None and _mentions(module, used, path, function)


def _mentions(module: SourceModule, used: ast.expr, path: ast.expr, function: FunctionNode | None) -> bool:
    wanted = {ast.unparse(path)}
    if isinstance(path, ast.Name) and (value := _one_value(module, path, function)):
        wanted.add(ast.unparse(value))
    seen = [used]
    if isinstance(used, ast.Name) and (value := _one_value(module, used, function)):
        seen.append(value)
    return any(ast.unparse(n) in wanted for s in seen for n in walk(s) if isinstance(n, ast.expr))


def _one_value(module: SourceModule, name: ast.Name, function: FunctionNode | None) -> ast.expr | None:
    bound = bindings_in(module, function, name.id)
    return bound[0].value if len(bound) == 1 and not isinstance(bound[0].value, (ast.Constant, ast.Name)) else None
