"""What every rank fetches into one folder on the first run: torch.hub's repositories, CLIP's weights, sets, archives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from posixpath import basename, join

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.conditions import conjuncts
from codemods.analysis.files.before_fit import is_made_above_fit
from codemods.analysis.files.dead_ways import is_dead
from codemods.analysis.files.every_rank import Way, is_for_some, way_of_every_rank
from codemods.analysis.files.filled_on_demand import is_thought_of
from codemods.analysis.files.heirs_that_fetch import is_heir_that_fetches
from codemods.analysis.files.named_classes import classes_by_name, holder_of_named
from codemods.analysis.files.own_paths import is_own_path
from codemods.analysis.files.switched_on import switched_on
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_tests import split_of
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import CallSite
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.import_targets import folders_above
from codemods.store.project import Project

# They load archives down into their root in place, and unpack them there: torchvision 0.22, torchaudio 2.6, torchgeo 0.7.
_SETS = ("torchvision.datasets.", "torchaudio.datasets.", "torchgeo.datasets.")
# What loads an archive in place where it is missing, and unpacks it: beir 2.2, torchvision.
_ARCHIVES = frozenset({"beir.util.download_and_unzip", "torchvision.datasets.utils.download_and_extract_archive"})
# Each of them loads the repository down and unpacks it where its folder is missing, with no lock: torch 2.13.
OF_HUB = frozenset({"torch.hub.load", "torch.hub.list", "torch.hub.help"})
_CHOSEN = "*"  # for the name of a class that the program chooses
_OF_CLIP = lazy(r"RN50|RN101|ViT-[BL]/\d\d")
_A_FILE = lazy(r"path|file|ckpt|checkpoint|weights|\.pt\b|\.pth\b|dir\b|folder|join\(", re.IGNORECASE)
# `local_files_only=rank != 0` is handed over by who lets one process in first; a parameter that is False says nothing.
_LOCKS = lazy(
    r"\b\w*(?<![bBcC])[lL]ock\(|\bacquire\(|filelock|main_process_first|local_files_only[\"'\]]*\s*=(?!\s*(?:False|None)\b|=)"
)
_BARRIERS = lazy(r"wait_for_everyone|barrier\(|synchronize\(")
# What some ranks do above a barrier that may bring the files, or let them wait for the one that does.
_BRINGS = lazy(r"download|prepare|load|build|fetch|hub|[dD]ata|cache|get_\w+\(|make_|barrier|wait|sync")
_GEOMETRIC = frozenset({"Dataset", "InMemoryDataset", "OnDiskDataset"})
_SETS_OF_GEOMETRIC = "torch_geometric.datasets."
# Those of torch_geometric 2.6 that are made in memory, or out of random numbers alone.
_MADE_UP = frozenset(
    {
        "BAShapes", "ExplainerDataset", "FakeDataset", "FakeHeteroDataset", "InfectionDataset", "RandomPartitionGraphDataset",
        "StochasticBlockModelDataset",
    }
)  # fmt: skip
WORDS = (
    b"hub.load(", b"hub.list(", b"hub.help(", b"clip.load(", b"download=", b"download =", b"torch_geometric",
    b"download_and_unzip(", b"download_and_extract",
)  # fmt: skip


@record
class Fetch:
    """folder: where it is fetched to, as it is written; None for the cache of torch.hub, and where a class knows it.

    asked: the call of another function that gives `download=True`, where the fetch itself is handed it. processes: a data set of
    torch_geometric that loads nothing down, and makes its files of raw ones. by_name: one of the classes that a name may choose.
    """

    call: ast.Call
    folder: ast.expr | None
    way: Way
    asked: CallSite | None = None
    processes: bool = False
    by_name: str = ""


def fetched_by_all(project: Project, module: SourceModule) -> Iterator[Fetch]:
    """The first such call of each name in a function, where every rank comes and nobody is let in first."""
    if not any(module.holds(word) for word in WORDS):
        return
    told: set[tuple[int, str]] = set()
    for call in module.nodes(ast.Call):
        fetched = _fetches(project, module, call)
        function = module.function_of(call)
        if fetched is None or (key := (id(function), _class_name(module, call))) in told:
            continue
        if not _is_unguarded(project, module, call, function):
            continue
        folder = fetched[0] if fetched else None
        if folder is not None and is_own_path(project, module, folder, whole=False):
            continue
        if (found := _where_all_come(project, module, call)) is not None:
            told.add(key)
            asked, way = found
            built = _built(project, module, call) if module.holds(b"torch_geometric") else None
            processes = built is not None and works_of(project, built) == ("process",)
            by_name = built.node.name if built is not None and holder_of_named(module, call) else ""
            yield Fetch(call, folder, way, asked if asked.call is not call else None, processes, by_name)


def _where_all_come(project: Project, module: SourceModule, call: ast.Call) -> tuple[CallSite, Way] | None:
    """(the call that has it fetched, a way by which every rank reaches it), where nobody is let in first."""
    download = next((k.value for k in call.keywords if k.arg == "download"), None)
    asking = switched_on(project, module, download, call) if download is not None else (CallSite(module, call),)
    for site in asking:
        inner = site.call is call
        if not inner and not _is_unguarded(project, site.module, site.call, site.module.function_of(site.call), top=True):
            continue
        way = way_of_every_rank(project, site.module, site.call, loose=True)
        if way is None or is_made_above_fit(project, way) or is_dead(project, way):
            continue
        way = way if inner else Way(((module, call), *way.frames), way.shown)
        if not _waits(way):
            return site, way
    return None


def _built(project: Project, module: SourceModule, call: ast.Call) -> ClassSite | None:
    """A data set of torch_geometric's kind: its constructor downloads and processes what it does not find.

    Where a name says which class of a module is made, the first such one of it.
    """
    name = dotted(call.func)
    found = find_class(project, module, name) if last(name)[:1].isupper() else None
    sites = (found,) if found is not None else classes_by_name(project, module, call)
    return next((s for s in sites if _is_of_geometric(project, s) and works_of(project, s)), None)


def _is_of_geometric(project: Project, site: ClassSite) -> bool:
    external = class_facts(project, site.module, site.node).external
    return any(base.startswith("torch_geometric.data.") and last(base) in _GEOMETRIC for base in external)


def works_of(project: Project, site: ClassSite) -> tuple[str, ...]:
    """What the class of a data set does itself where its files are missing: its `download` and `process`, if they do anything."""
    methods = [class_facts(project, site.module, site.node).method(n) for n in ("download", "process")]
    return tuple(m[1].name for m in methods if m is not None and not _is_empty(m[1]))


def _is_empty(function: FunctionNode) -> bool:
    return all(
        isinstance(s, (ast.Pass, ast.Raise)) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Return) and (s.value is None or isinstance(s.value, ast.Constant)))
        for s in function.body
    )  # fmt: skip


def _fetches(project: Project, module: SourceModule, call: ast.Call) -> tuple[ast.expr, ...] | None:
    """The folder that a call fetches into, () where it is torch.hub's own; None for any other call."""
    name = _class_name(module, call)
    given = {k.arg: k.value for k in call.keywords}
    if name == "clip.load":
        return _of_clip(project, module, call, given)
    if name in OF_HUB:
        source = given.get("source")
        return None if isinstance(source, ast.Constant) and source.value == "local" else ()
    if name in _ARCHIVES:
        folder = call.args[1] if len(call.args) > 1 else given.get("out_dir", given.get("download_root"))
        return (folder,) if folder is not None and _is_switched_on(project, module, call) else None
    if module.holds(b"torch_geometric") and _built(project, module, call) is not None:
        return ()
    if name.startswith(_SETS_OF_GEOMETRIC):
        return _of_geometric(name, call, given)
    download = given.get("download")
    of_package = name.startswith(_SETS) and (last(name)[:1].isupper() or last(name) == _CHOSEN)
    if not of_package and (download is None or not is_heir_that_fetches(project, module, call, _SETS)):
        return None
    if download is None or next(switched_on(project, module, download, call), None) is None:
        return None
    root = call.args[0] if call.args else given.get("root")
    return (root,) if root is not None else None


def _of_geometric(name: str, call: ast.Call, given: dict[str | None, ast.expr]) -> tuple[ast.expr, ...] | None:
    """A data set of torch_geometric itself: its constructor loads down and processes what `root` does not hold, with no lock."""
    kind = name.removeprefix(_SETS_OF_GEOMETRIC)
    if not kind[:1].isupper() or "." in kind or kind in _MADE_UP:
        return None
    root = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else given.get("root")
    return (root,) if root is not None else () if None in given or call.args else None


def _is_switched_on(project: Project, module: SourceModule, call: ast.Call, up: int = 1) -> bool:
    """True where each flag over the call, or over that of a method of the same class round it, is True by some caller."""
    function = module.function_of(call)
    for outer in module.ancestors(call):
        if outer is function:
            break
        if isinstance(outer, ast.If) and any(call in walk(s) for s in outer.body):
            flags = (c for c in conjuncts(outer.test) if isinstance(c, (ast.Name, ast.Attribute)))
            if not all(any(True for _ in switched_on(project, module, flag, call)) for flag in flags):
                return False
        elif isinstance(outer, ast.If):
            return False  # what an `else` leaves over
    if up == 0 or function is None or module.class_of(function) is None:
        return True
    own = [c for c in module.calls_named(function.name) if dotted(c.func) == f"self.{function.name}"]
    return not own or any(_is_switched_on(project, module, c, up - 1) for c in own)


def _class_name(module: SourceModule, call: ast.Call) -> str:
    """The full name of what is called; for a variable, that of the class it holds: `Set = datasets.CIFAR10`."""
    name = qualified(module, call.func)
    if not isinstance(call.func, ast.Name) or name.startswith(_SETS):
        return name
    given = assigned(module, call.func, call.func.id)
    round_call = {id(up) for up in module.ancestors(call)}
    blocks = ((v, module.block_of(module.statement_of(v))) for v in given if v.lineno < call.lineno)
    above = [v for v, block in blocks if any(id(s) in round_call for s in block)]
    held = {_held(module, v) for v in (above[-1:] or given)}  # what the same arm puts into it
    return sorted(held)[0] if held and all(h.startswith(_SETS) for h in held) else name


def _held(module: SourceModule, value: ast.expr) -> str:
    """`torchvision.datasets.CIFAR10`; where the class is chosen by its name, the package with a star."""
    if isinstance(value, ast.Call) and dotted(value.func) == "getattr" and len(value.args) == 2:
        return f"{qualified(module, value.args[0])}.{_CHOSEN}"
    return qualified(module, value)


def _of_clip(
    project: Project, module: SourceModule, call: ast.Call, given: dict[str | None, ast.expr]
) -> tuple[ast.expr, ...] | None:
    """OpenAI's `clip.load("ViT-B/32")`: it writes the weights in place, and then holds them against their checksum."""
    named = call.args[0] if call.args else given.get("name")
    if named is None or any(_is_of_project(project, module, name) for name in ("clip.load", "clip")):
        return None
    if isinstance(named, ast.Constant):
        known = isinstance(named.value, str) and _OF_CLIP.match(named.value) is not None
    else:
        known = not _A_FILE.search(origin_text(module, named))
    folder = given.get("download_root")
    return None if not known else (folder,) if folder is not None else ()


def _is_of_project(project: Project, module: SourceModule, name: str) -> bool:
    """True for a module of the project, but the file that imports the name: `import clip` in a `clip.py` means another."""
    found = (project.resolve(name, join(folder, basename(module.path))) for folder in folders_above(module.path))
    return any(f is not None and f.path != module.path for f in found)


def _is_unguarded(
    project: Project, module: SourceModule, call: ast.Call, function: FunctionNode | None, *, top: bool = False
) -> bool:
    """False where somebody fetches it before the others come: `prepare_data`, or a call under a test of the rank.

    top: a call that no function is round may be asked about, too.
    """
    if function is None and not top:
        return False
    owner = module.class_of(call)
    if owner is not None and "prepare_data" in module.methods_of(owner):
        return False
    name = qualified(module, call.func)
    others = [c for c in module.calls_named(last(name)) if c is not call and qualified(module, c.func) == name]
    if any(is_for_some(project, module, c) or _tells_some(project, module, c) for c in others):
        return False
    if ranks_reaching(project, module, call).some:
        return False
    return function is None or not is_thought_of(project, module, function)


def _tells_some(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for `get_sets(root, download=rank == 0)`."""
    given = (*call.args, *(k.value for k in call.keywords))
    return any(split_of(module, g, project) is not None for g in given if not isinstance(g, ast.Constant))


def _waits(way: Way) -> bool:
    """True where a function on the way takes a lock, or waits for the others above the call."""
    for home, node in way.frames:
        function = home.function_of(node)
        line = line_of(node)
        if function is None:
            continue
        above = "\n".join(home.text.splitlines()[function.lineno - 1 : line])
        if _LOCKS.search(above) or (_BARRIERS.search(above) and _is_brought(home, function, line)):
            return True
    return False


def _is_brought(module: SourceModule, function: FunctionNode, line: int) -> bool:
    """True where some ranks do something above the place that may fetch the files."""
    for node in module.nodes(ast.If):
        if not function.lineno <= node.lineno < line or not names_rank(module.text_of(node.test)):
            continue
        if any(_BRINGS.search(module.text_of(s)) for s in (*node.body, *node.orelse) if line_of(s) < line):
            return True
    return False
