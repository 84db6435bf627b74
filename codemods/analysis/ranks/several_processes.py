"""Does a test tell a run with several processes from one without? Such a test has one answer where ranks matter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.bindings import bindings_of
from codemods.analysis.conditions import conjuncts
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import position
from codemods.analysis.ranks.groupless_handlers import is_without_a_group
from codemods.analysis.ranks.kept_world_sizes import holds_size
from codemods.analysis.ranks.process_modes import several_by_mode
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_WORDS = ("is_initialized", "is_available", "distributed", "ddp", "multi_gpu", "is_dist", "use_dist", "dist_train", "is_parallel")
_MODES = ("dist", "ddp", "distributed", "launcher")  # a setting that says how the program is started
_SWITCHES = frozenset({"enabled", "enable", "is_enabled", "is_on", "on", "istrue", "is_true", "use", "active", "flag"})
_OFF = frozenset({"off", "none", "no", "false", "single"})
# Each of several processes may be left one GPU.
_JOINS = (
    b"torch.distributed",
    b"LOCAL_RANK",
    b"local_rank",
    b"init_process_group",
    b"ccelerat",
    b"ightning",
    b"Trainer(",
    b"hvd",
)
_SYSTEMS = ("platform.system", "sys.platform", "os.name")
_WINDOWS = ("Windows", "win32", "nt")
_EARLY = lazy(r"initialized|available")
_SIZES = ("world_size", "num_processes", "get_world_size", "num_gpus", "n_gpu")


def several_processes(module: SourceModule, test: ast.expr) -> bool | None:
    """What `test` answers in a run with several processes; None where it asks something else as well."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = several_processes(module, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = {several_processes(module, value) for value in test.values}
        decisive = isinstance(test.op, ast.Or)
        if decisive in answers:
            return decisive
        return answers.pop() if len(answers) == 1 else None
    if isinstance(test, ast.Compare):
        if (windows := _asks_for_windows(module, test)) is not None:
            return not windows
        by_mode = several_by_mode(test)
        return by_mode if by_mode is not None or len(test.ops) != 1 else _compared(module, test)
    test = _section(test)
    if isinstance(test, ast.Subscript):  # `opt["dist"]`
        name = test.slice.value.lower() if isinstance(test.slice, ast.Constant) and isinstance(test.slice.value, str) else ""
    elif isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
        asked = dotted(test.func if isinstance(test, ast.Call) else test)
        if "mps" in asked.split("."):  # `torch.backends.mps.is_available()`: one GPU, and no process group for it
            return False
        name = last(asked).lower()
    else:
        return None
    if name == "dist" and not isinstance(test, ast.Name):  # a name alone may be the module, or a distance
        return True
    return True if name == "distribution" or any(word in name for word in _WORDS) else None


def _section(test: ast.expr) -> ast.expr:
    """What a switch turns on, where it stands in a section of the settings: `cfg.TRAIN.DDP` for `cfg.TRAIN.DDP.ENABLED`."""
    if isinstance(test, ast.Attribute) and test.attr.lower() in _SWITCHES:
        return test.value
    if isinstance(test, ast.Subscript) and isinstance(test.slice, ast.Constant) and str(test.slice.value).lower() in _SWITCHES:
        return test.value
    return test


def is_of_one_process(module: SourceModule, node: ast.AST) -> bool:
    """True in the branch of such a test that a run with several processes does not take, and behind an assert that ends it."""
    if is_asserted_alone(module, node) or _is_in_a_branch_of_one(module, node):
        return True
    return module.function_of(node) is None and _starts_alone(module)


def is_without_rank(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """As `is_of_one_process`, also where callers alone show what is tested for None: `rank` of `load(path, rank=None)`."""
    if is_of_one_process(module, node):
        return True
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and below is not up.test and isinstance(up.test, ast.Compare):
            asked, there = up.test, any(below is s for s in up.body)
            empty = isinstance(asked.ops[0], (ast.Is, ast.Eq))
            if is_none(asked.comparators[0]) and isinstance(asked.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
                if empty is there and rank_source(module, asked.left, project) is not None:
                    return True
        below = up
    return False


def is_asserted_alone(module: SourceModule, node: ast.AST) -> bool:
    """True behind a statement of the same function that ends every run of several processes."""
    below = node
    for up in module.ancestors(node):
        if _is_asserted(module, below):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def _is_in_a_branch_of_one(module: SourceModule, node: ast.AST) -> bool:
    below = node
    known: set[str] = set()  # tests that have been passed below
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and below is not up.test:
            otherwise = any(s is below for s in up.orelse)
            several = several_processes(module, up.test)
            if (several is not None and several is otherwise) or (otherwise and _is_left_for_one(module, up.test, known)):
                return True
            if not otherwise:
                known.update(ast.unparse(part) for part in conjuncts(up.test))
        elif isinstance(up, ast.ExceptHandler) and is_without_a_group(module, up):
            return True
        below = up
    return False


def _is_asserted(module: SourceModule, below: ast.AST) -> bool:
    """True where the block says above `below` that there is one process: `assert not args.distributed`, `if …: raise`.

    Whether the process group is there yet is another question: it may be made below.
    """
    place = position(module, below)
    return place is not None and any(index < place.index for index in ending_for_several(module, place.block))


def ending_for_several(module: SourceModule, block: list[ast.stmt]) -> Iterator[int]:
    """The statements of a block, by their numbers, that end every run of several processes which comes to them."""
    for index, test, ends in _asserts(module).get(id(block), ()):
        if several_processes(module, test) is ends:
            text = ast.unparse(test)
            if _EARLY.search(text) is None and not ("gpu" in text and any(module.holds(word) for word in _JOINS)):
                yield index


@once_a_module
def _asserts(module: SourceModule) -> Mapping[int, tuple[tuple[int, ast.expr, bool], ...]]:
    """Block, by id -> (index, test, whether it raises where the test holds) of what ends the program in it."""
    found: dict[int, list[tuple[int, ast.expr, bool]]] = {}
    for block in (module.tree.body, *(b for _, b in module.blocks())):
        for index, statement in enumerate(block):
            ends = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise) and not statement.orelse
            if isinstance(statement, ast.Assert) or (isinstance(statement, ast.If) and ends):
                found.setdefault(id(block), []).append((index, statement.test, ends))
    return {block: tuple(rows) for block, rows in found.items()}


def _starts_alone(module: SourceModule) -> bool:
    """True for a script that starts a group of one process, to try a class out: `init_process_group(…, world_size=1)`."""
    for call in module.calls_named("init_process_group") if module.holds(b"world_size") else ():
        size = next((k.value for k in call.keywords if k.arg == "world_size"), None)
        if isinstance(size, ast.Constant) and size.value == 1 and module.function_of(call) is None:
            return True
    return False


def _is_left_for_one(module: SourceModule, test: ast.expr, known: set[str]) -> bool:
    """True where `sync and gpus > 1 and distributed` failed and `sync` holds: it was the processes that were missing."""
    rest = [part for part in conjuncts(test) if ast.unparse(part) not in known]
    several = [several_processes(module, part) is True for part in rest]
    counted = [isinstance(part, ast.Compare) and "gpu" in ast.unparse(part).lower() for part in rest]
    return any(several) and all(s or c for s, c in zip(several, counted, strict=True))


def _asks_for_windows(module: SourceModule, test: ast.Compare) -> bool | None:
    """Whether a test that asks for the operating system means Windows, which has no NCCL; None where it asks something else."""
    value = test.comparators[0]
    if len(test.ops) != 1 or not isinstance(value, ast.Constant) or value.value not in _WINDOWS:
        return None
    asked = test.left
    if isinstance(asked, ast.Name):
        bound = bindings_of(module, asked)
        if len(bound) != 1 or bound[0].value is None or bound[0].part:
            return None
        asked = bound[0].value
    if dotted(asked.func if isinstance(asked, ast.Call) else asked) not in _SYSTEMS:
        return None
    return isinstance(test.ops[0], ast.Eq) if isinstance(test.ops[0], (ast.Eq, ast.NotEq)) else None


def _compared(module: SourceModule, test: ast.Compare) -> bool | None:
    left, op, right = test.left, test.ops[0], ast.unparse(test.comparators[0]).strip("'\"")
    if right in ("None", "-1") and rank_source(module, left) is not None:
        if isinstance(op, (ast.NotEq, ast.IsNot, ast.Gt)):
            return True
        return False if isinstance(op, (ast.Eq, ast.Is)) else None
    name = last(dotted(left.func if isinstance(left, ast.Call) else left)).lower()
    if name in _MODES and right.lower() in _OFF and isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return isinstance(op, (ast.NotEq, ast.IsNot))
    if right == "None" and name.endswith("sampler") and isinstance(op, (ast.Is, ast.IsNot)):
        return isinstance(op, ast.IsNot)  # one process alone has none
    if right not in ("0", "1", "2") or not (any(word in name for word in _SIZES) or holds_size(module, left)):
        return None
    if right == "2":
        return isinstance(op, ast.GtE) if isinstance(op, (ast.Lt, ast.GtE)) else None
    if isinstance(op, ast.Gt) or (isinstance(op, ast.NotEq) and right == "1"):
        return True
    return False if (isinstance(op, (ast.Eq, ast.LtE)) or (isinstance(op, ast.Lt) and right == "1")) else None
