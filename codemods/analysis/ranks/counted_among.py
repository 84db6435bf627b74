"""What a number of processes, or the number of one, counts: the processes of one node, or all of them.

The expression is followed to where its value comes from: names, fields, parameters through the calls that give them, what
`mp.spawn` hands over. An answer needs every value to say the same; constants stand for a run with one process.
"""

from __future__ import annotations

import ast
import re
from enum import Enum

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, end_of, family, qualified
from codemods.analysis.ranks.spawned import spawned_parameter
from codemods.analysis.ranks.values_behind import Value, values_behind
from codemods.data.rank_names import LOCAL_NAMES
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS, SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LOCAL_SIZES = frozenset({"LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"})
_WORLD_SIZES = frozenset({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
_LOCAL_RANKS = frozenset(n for n in LOCAL_NAMES if n.isupper())
# A number of machines, by its name: `args.nodes`, `SLURM_NNODES`, `num_machines`.
_NODES = lazy(r"(?:^|_)(?:n_?|num_?)?(?:nodes|machines|hosts)$|^SLURM_J?O?B?_?N(?:UM_)?NODES$", re.I)
_LOCAL = lazy(r"local_?rank|LOCAL_RANK", re.I)
# Launchers that give each process its number on the node as an option (`--local_rank=3`): torchrun does not.
_HANDS_OVER = (b"deepspeed --", b"distributed.launch")
_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt")
# The number of this machine among them.
_NODE_INDEX = lazy(r"(?:^|_)(?:node|machine|host|group)_?(?:rank|id|index|idx)$|^SLURM_NODEID$|^nodeid$", re.I)


class Among(Enum):
    """NODE: the processes of one machine. SPAWNED: the same, as `mp.spawn` numbers them. WORLD: the processes of all machines,
    however many there are. PRODUCT: the same, worked out of a number of machines.
    """

    NODE = "the processes of one node"
    SPAWNED = "the processes that one spawn starts"
    WORLD = "all processes"
    PRODUCT = "all processes, by a number of nodes"

    @property
    def one_node(self) -> bool:
        return self in (Among.NODE, Among.SPAWNED)


def index_among(project: Project, module: SourceModule, node: ast.expr) -> Among | None:
    """What the number of a process counts, where every value that it may have says the same."""
    return _agreed([index_of(project, v) for v in values_behind(project, module, node)])


def size_among(project: Project, module: SourceModule, node: ast.expr) -> Among | None:
    """What a number of processes counts, where every value that it may have says the same."""
    return _agreed([size_of(project, v) for v in values_behind(project, module, node)])


def size_beside(project: Project, module: SourceModule, size: ast.expr, index: Value) -> Among | None:
    """What a number of processes counts where it is handed over by the call that hands over an index; else as `size_among`."""
    found = values_behind(project, module, size)
    call = index.given_in.statement_of(index.given)
    handed = [v for v in found if v.given is not size]
    same = [v for v in handed if v.given_in is index.given_in and v.given_in.statement_of(v.given) is call]
    return _agreed([size_of(project, v) for v in same or _by_the_same_test(found, index) or found])


def _by_the_same_test(sizes: list[Value], index: Value) -> list[Value]:
    """Those that are given where `args.local_rank != -1`, as the index is: the other ways to start the program give the others.

    A file of its own may give them, where the options are called the same.
    """
    tests = {t for t in _tests_over(index) if _LOCAL.search(t)}
    shared = {t for t in tests if "." in t}  # a plain name of another file is another variable
    return [v for v in sizes if (tests if v.module is index.module else shared) & _tests_over(v)]


def _tests_over(value: Value) -> set[str]:
    """The tests under which an expression stands, as they are written."""
    found: set[str] = set()
    below: ast.AST = value.node
    for up in value.module.ancestors(value.node):
        if isinstance(up, ast.If) and any(below is s for s in up.body):
            found.add(ast.unparse(up.test))
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return found
        below = up
    return found


def _agreed(answers: list[Among | None]) -> Among | None:
    return answers[0] if answers and len(set(answers)) == 1 else None


# What a value says by itself


def index_of(project: Project, value: Value) -> Among | None:
    """What the number of a process counts, by the expression that it comes from."""
    node, module = value.node, value.module
    if variable := environment(module, node):
        return Among.NODE if variable in _LOCAL_RANKS else None
    if isinstance(node, ast.Name) and spawned_parameter(project, module, node):
        return Among.SPAWNED
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and size_among(project, module, node.right) is Among.NODE:
        return Among.NODE
    if isinstance(node, ast.Name):
        return None  # a parameter that nobody is seen to give: its name is no proof
    if isinstance(node, ast.Constant):
        return Among.NODE if _is_option_of_launcher(project, module, node) else None
    name = end_of(node.func if isinstance(node, ast.Call) else node).lstrip("_")
    return Among.NODE if name in LOCAL_NAMES else None


def _is_option_of_launcher(project: Project, module: SourceModule, default: ast.Constant) -> bool:
    """True for the default in `local_rank: int = 0` of a class of settings, where a launcher is used that fills it in."""
    field = module.parent(default)
    if not isinstance(field, ast.AnnAssign) or dotted(field.target) not in LOCAL_NAMES or type(default.value) is not int:
        return False
    if not isinstance(module.parent(field), ast.ClassDef):
        return False
    return any(project.files_containing(word, kinds=_TEXTS) for word in _HANDS_OVER)


def size_of(project: Project, value: Value) -> Among | None:
    """What a number of processes counts, by the expression that it comes from."""
    node, module = value.node, value.module
    if variable := environment(module, node):
        if variable in _WORLD_SIZES and not sets_environment(project, variable):
            return Among.WORLD
        return Among.NODE if variable in _LOCAL_SIZES else None
    if isinstance(node, ast.Call):
        name = qualified(module, node.func)
        if name == "torch.cuda.device_count":
            return Among.NODE
        return Among.WORLD if name == "torch.distributed.get_world_size" and not node.args and not node.keywords else None
    if isinstance(node, ast.Attribute) and node.attr == "num_processes" and "accelerat" in dotted(node.value).lower():
        return Among.WORLD  # of Accelerate, on all machines
    if dotted(node).endswith("trainer.world_size") and is_lightning(module):
        return Among.WORLD
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        counted = any(is_node_count(module, side) for side in (node.left, node.right))
        return Among.PRODUCT if counted else None
    return None


def is_lightning(module: SourceModule) -> bool:
    """True for a file that imports Lightning, whose Trainer has `world_size`, `global_rank` and `local_rank`."""
    return any(family(name) == "lightning" for name in module.imported_modules)


def is_node_count(module: SourceModule, node: ast.expr) -> bool:
    """True for a number of machines, by its name."""
    return _NODES.search(_word(module, node)) is not None


def is_node_index(module: SourceModule, node: ast.expr) -> bool:
    """True for the number of this machine, by its name."""
    return _NODE_INDEX.search(_word(module, node)) is not None


def _word(module: SourceModule, node: ast.expr) -> str:
    if isinstance(node, ast.Call) and dotted(node.func) == "int" and len(node.args) == 1:
        node = node.args[0]
    return environment(module, node) or end_of(node)


def environment(module: SourceModule, node: ast.expr) -> str:
    """The variable that `os.environ["X"]`, `os.environ.get("X", …)` or `os.getenv("X")` reads; "" for anything else."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and end_of(node.value) == "environ":
        key = node.slice
    elif isinstance(node, ast.Call) and node.args and _reads_environment(module, node.func):
        key = node.args[0]
    elif isinstance(node, ast.Subscript) and _is_environment(module, node.value):
        key = node.slice
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _reads_environment(module: SourceModule, func: ast.expr) -> bool:
    if end_of(func) == "getenv":
        return True
    return isinstance(func, ast.Attribute) and func.attr == "get" and (
        end_of(func.value) == "environ" or _is_environment(module, func.value)
    )


def _is_environment(module: SourceModule, node: ast.expr) -> bool:
    """True for a name that is bound to `os.environ`."""
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else []
    return len(bound) == 1 and bound[0].value is not None and end_of(bound[0].value) == "environ"


def sets_environment(project: Project, variable: str) -> bool:
    """True where the project gives a variable of the launcher a value of its own: what it counts is the project's choice."""
    return project.keep(("sets environment", variable), lambda: _sets(project, variable))


_SETS = r"(?:environ\s*\[\s*[\"']{0}[\"']\s*\]\s*=[^=]|setdefault\(\s*[\"']{0}[\"']|update\([^)]*{0}|[\"']{0}[\"']\s*:|\b{0}=)"


def _sets(project: Project, variable: str) -> bool:
    pattern = re.compile(_SETS.format(variable).encode())
    paths = [p for p in project.files_containing(variable.encode()) if p.endswith(PYTHON_KINDS)]
    return any(pattern.search(project.read(p) or b"") for p in paths)
