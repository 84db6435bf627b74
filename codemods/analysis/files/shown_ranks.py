"""What in a function, its class, the statements of a file or what they call shows that several processes run it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.own_trainers import made_own_trainer, makes_a_trainer
from codemods.analysis.ranks.spawned_groups import starts_on_ranks
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ROLES = (Role.LIGHTNING_CALLBACK, Role.LIGHTNING_MODULE, Role.HF_CALLBACK)
# What a function speaks of that runs on several processes; a rank alone may be that of a matrix.
_PROCESSES = lazy(
    r"\bget_rank\(|\bget_world_size\(|init_process_group|DistributedDataParallel|\bDDP\(|DistributedSampler|\bworld_size\b"
    r"|\b(?:global_|local_)rank\b|\brank\b|\b(?:LOCAL_)?RANK\b|WORLD_SIZE|\bAccelerator\(|\baccelerator\b|\bFabric\(|\bfabric\b"
    r"|is_main_process|is_world_process_zero|is_global_zero|\b(?:[A-Z]\w*)?Trainer\(|\.barrier\(|deepspeed\.init"
    r"|(?:init|setup|initialize|launch)_\w*(?:dist|ddp|process)\w*\(|ddp_setup\(|dist_init\("
)
# A question after the kind of a model, `isinstance(net, DistributedDataParallel)`: one process asks it as well.
_KIND_ASKED = lazy(r"\bisinstance\([^()]*(?:\([^()]*\)[^()]*)*\)")
_ASKED = lazy(r"\bget_(?:rank|world_size)\(|\bis_(?:main|master|rank_zero)\w*\(|\bget_world_rank\(")
_JOINS = frozenset({"init_process_group", "Accelerator", "Trainer", "Fabric", "Seq2SeqTrainer"})  # what makes a process a rank
_PACKAGES = ("torch.distributed.", "accelerate.", "lightning.", "pytorch_lightning.", "transformers.")
_STARTERS = lazy(r"\b(?:spawn|start_processes|notebook_launcher|debug_launcher|elastic_launch|Process)\(")


def shown_in(project: Project, module: SourceModule, function: FunctionNode | None) -> Evidence | None:
    """What in a function, its class, or the statements of a file shows that several processes run it."""
    if function is not None and (found := _by_role(project, module, function)) is not None:
        return found
    in_file = ranks_in_file(project, module)
    if in_file is None:
        if function is not None and (started := starts_on_ranks(project, module, function)) is not None:
            return started
        return _by_imports(project, module, function) or _by_own_trainer(project, module, function)
    if function is None:
        return in_file if _speaks_of_processes(_top_text(module)) else None
    owner = module.class_of(function)
    spoken = _speaks_of_processes(module.text_of(owner if owner is not None else function))
    outer = module.function_of(function)
    return in_file if spoken or (outer is not None and _speaks_of_processes(module.text_of(outer))) else None


def _speaks_of_processes(text: str) -> bool:
    return _PROCESSES.search(text) is not None and _PROCESSES.search(_KIND_ASKED.sub("", text)) is not None


def _by_imports(project: Project, module: SourceModule, function: FunctionNode | None) -> Evidence | None:
    """The file of the project that starts the processes, where the function asks an object or function of it for the rank."""
    if function is None or not _ASKED.search(module.text_of(function)):
        return None
    return project.keep(("ranks in imports", module.path), lambda: _find_in_imports(project, module))


def _find_in_imports(project: Project, module: SourceModule) -> Evidence | None:
    for found in module.imports.values():
        for item in found:
            resolved = project.resolve(item.dotted, module.path)
            if resolved is None or resolved.path == module.path:
                continue
            folder = resolved.path.removesuffix("__init__.py") if resolved.path.endswith("/__init__.py") else ""
            starting = project.files_containing(b"init_process_group(")
            near = [p for p in starting if p == resolved.path or (folder and p.startswith(folder))]
            if near:
                text = f"{item.dotted} starts the process group, and the function asks for the rank"
                return Evidence("static", text, near[0], 1)
    return None


def _by_own_trainer(project: Project, module: SourceModule, function: FunctionNode | None) -> Evidence | None:
    """The Trainer of the project that the function makes and trains with: its file need not name transformers."""
    scope = function if function is not None else module.tree
    for name, call in _named_trainers(module, scope):
        trains = any(dotted(c.func) == f"{name}.train" for c in module.calls_named("train") if module.function_of(c) is function)
        if trains and module.function_of(call) is function and made_own_trainer(project, module, call):
            text = f"{module.text_of(call.func)} is derived from transformers' Trainer"
            return Evidence("several", text, module.path, call.lineno)
    return None


def _named_trainers(module: SourceModule, scope: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """`trainer = OurTrainer(...)`."""
    if not module.holds(b".train("):
        return
    for node in walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            if name := dotted(node.targets[0]):
                yield name, node.value


def _by_role(project: Project, module: SourceModule, function: FunctionNode) -> Evidence | None:
    """A class that a Trainer runs, and a data module's `setup`, which it calls on every rank."""
    owner = module.class_of(function)
    if owner is None or not owner.bases:
        return None
    facts = class_facts(project, module, owner)
    if facts.unresolved:
        return None
    if function.name == "__init__" and facts.is_a(Role.LIGHTNING_MODULE) and not is_launched_from_outside(project):
        return None  # rank 0 makes it before `fit`, in which Lightning starts the others
    sets_up = function.name == "setup" and facts.is_a(Role.LIGHTNING_DATA_MODULE)
    if sets_up or (facts.is_a(Role.LIGHTNING_MODULE) and module.parent(function) is owner):
        what = "data module" if sets_up else "LightningModule"
        return Evidence("static", f"{owner.name} is a {what}: a Trainer runs it on every rank", module.path, owner.lineno)
    return ranks_in_file(project, module) if any(facts.is_a(role) for role in _ROLES) else None


_LAUNCHERS = (b"torchrun", b"srun ", b"torch.distributed.launch", b"torch.distributed.run", b"sbatch")


def is_launched_from_outside(project: Project) -> bool:
    """True where a script or a text of the repository starts all processes at once."""
    kinds = (*SHELL_KINDS, ".md", ".rst", ".txt")
    return any(project.files_containing(word, kinds=kinds) for word in _LAUNCHERS)


@once_a_module
def _top_text(module: SourceModule) -> str:
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return "\n".join(module.text_of(s) for s in module.tree.body if not isinstance(s, defined))


def joins_below(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.AST) -> Evidence | None:
    """The call beside `node`, in the same function, by which the process becomes a rank: whoever comes here is one of many.

    A call in another arm of a branch does not count: `prepare` and `train` of one script are two programs.
    """
    for call in _calls_in(module, function):
        site = called_function(project, module, call)
        if site is None or site.node is function or not _go_together(module, node, call):
            continue
        if joined := _joins(project, site.module, site.node):
            text = f"{module.text_of(call.func)} comes to {joined}"
            return Evidence("several", text, module.path, call.lineno)
    return None


def _calls_in(module: SourceModule, function: FunctionNode | None) -> Iterator[ast.Call]:
    first, end = (function.lineno, function.end_lineno or 0) if function is not None else (0, 1 << 30)
    for call in module.nodes(ast.Call):
        named = isinstance(call.func, (ast.Name, ast.Attribute))
        if named and first <= call.lineno <= end and module.function_of(call) is function:
            yield call


def _joins(project: Project, module: SourceModule, function: FunctionNode) -> str:
    """The call of `init_process_group`, Accelerator or a Trainer in a function that starts no processes; "" without one."""
    if not may_show_ranks(project, module.path) or ranks_in_file(project, module) is None:
        return ""
    if _STARTERS.search(module.text_of(function)):
        return ""
    for call in module.calls_named(*_JOINS):
        if module.function_of(call) is function and qualified(module, call.func).startswith(_PACKAGES):
            return "" if _is_of_one(call) else last(qualified(module, call.func))
    if module.holds(b"Trainer"):
        return next((module.text_of(c.func) for c in _calls_in(module, function) if _makes_one(project, module, c)), "")
    return ""


def _makes_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    return bool(made_own_trainer(project, module, call)) or makes_a_trainer(project, module, call)


def _is_of_one(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    devices = given.get("devices", given.get("gpus"))
    single = isinstance(devices, ast.Constant) and devices.value in (1, "1")
    return single or (isinstance(devices, ast.List) and len(devices.elts) == 1)


def _go_together(module: SourceModule, one: ast.AST, other: ast.AST) -> bool:
    """False where the two stand in different arms of a branch: no process comes to both."""
    asked = _asked_for(module, other)
    if any(text in asked and asked[text] != value for text, value in _asked_for(module, one).items()):
        return False  # `mode == "train"` and `mode == "export"`: no process comes to both
    below: ast.AST = one
    for up in module.ancestors(one):
        if isinstance(up, (ast.If, ast.Try)):
            arms = [up.body, up.orelse, *([h.body for h in up.handlers] if isinstance(up, ast.Try) else [])]
            mine = next((i for i, arm in enumerate(arms) if any(s is below for s in arm)), None)
            theirs = next((i for i, arm in enumerate(arms) if any(_holds(s, other) for s in arm)), None)
            if mine is not None and theirs is not None:
                return mine == theirs or (isinstance(up, ast.Try) and {mine, theirs} == {0, 1})
            if isinstance(up, ast.If) and mine is not None and isinstance(arms[mine][-1], (ast.Return, ast.Raise)):
                return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        below = up
    return True


def _asked_for(module: SourceModule, node: ast.AST) -> dict[str, object]:
    """`{"args.mode": "train"}` under `if args.mode == "train":`."""
    out: dict[str, object] = {}
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.If) and any(s is below for s in up.body) and isinstance(up.test, ast.Compare):
            value = up.test.comparators[0]
            if len(up.test.ops) == 1 and isinstance(up.test.ops[0], ast.Eq) and isinstance(value, ast.Constant):
                out[module.text_of(up.test.left)] = value.value
        below = up
    return out


def _holds(statement: ast.stmt, node: ast.AST) -> bool:
    line: int = getattr(node, "lineno", 0)
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)
