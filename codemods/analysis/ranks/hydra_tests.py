"""What tests of settings come out as in one run of a Hydra program, and how many processes its Trainer has there."""

from __future__ import annotations

import ast

from codemods.analysis.job_files.hydra_runs import UNKNOWN, HydraRun, Path
from codemods.analysis.names import family, last
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

_HOLDERS = lazy(r"(?:^|_)(?:cfg|conf|config|configs|args|opt|opts|hparams|params|settings)$")
_ONE = lazy(r"1|\[\s*\d+\s*,?\s*\]")
_OFF = frozenset({"false", "no", "off", "0", "0.0", ""})


def is_taken(module: SourceModule, node: ast.AST, run: HydraRun) -> bool:
    """False where a test of the run's settings keeps it off the place."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below is not up.test:
            if _outcome(up.test, run) is not (True if any(below is s for s in up.body) else False) and _outcome(up.test, run) is not None:
                return False
        if isinstance(below, ast.stmt):
            ends = (s for s in above(module, below) if isinstance(s, ast.If) and not s.orelse and leaves(s.body))
            if any(_outcome(s.test, run) is True for s in ends):
                return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return True
        below = up
    return True


def _outcome(test: ast.expr, run: HydraRun) -> bool | None:
    """None where the settings do not tell it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _outcome(test.operand, run)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [_outcome(v, run) for v in test.values]
        stop = isinstance(test.op, ast.Or)
        return stop if stop in parts else None if None in parts else not stop
    if isinstance(test, ast.Compare):
        return _compared(test, run)
    path, optional = _read(test)
    if not path or run.below(path) or (value := run.value(path)) == UNKNOWN:
        return None
    if value is None:
        return False if optional or path in run.values else None
    return value.lower() not in _OFF


def _compared(test: ast.Compare, run: HydraRun) -> bool | None:
    path, optional = _read(test.left)
    wanted = test.comparators[0]
    if len(test.ops) != 1 or not path or not isinstance(wanted, ast.Constant) or not isinstance(wanted.value, str):
        return None
    value = run.value(path)
    if value == UNKNOWN or run.below(path) or (value is None and not optional) or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return None
    return (value == wanted.value) is isinstance(test.ops[0], ast.Eq)


def _read(node: ast.expr) -> tuple[Path, bool]:
    """(the keys from the root of the settings, whether one that is not there counts as None): `cfg.a.b`, `cfg.get("a")`."""
    keys: list[str] = []
    optional = False
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            keys.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            keys.append(node.slice.value)
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            first = node.args[0] if len(node.args) == 1 and not node.keywords else None
            if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
                return (), False
            keys.append(first.value)
            optional = True
            node = node.func.value
        else:
            return (), False
    return (tuple(reversed(keys)), optional) if _HOLDERS.search(node.id) else ((), False)


# The Trainer


def trainer_keys(run: HydraRun) -> Path | None:
    """The keys that lead to the settings of Lightning's Trainer; None where there is not one such place."""
    named = [p[:-1] for p, v in run.values.items() if p and p[-1] == "_target_" and v and _is_trainer(v)]
    return named[0] if len(named) == 1 else None


def _is_trainer(name: str) -> bool:
    return last(name) == "Trainer" and family(name) == "lightning"


def has_one_process(run: HydraRun) -> bool:
    """True where the settings give the Trainer one device of one node, and no launcher starts it several times."""
    keys = trainer_keys(run)
    if keys is None or run.several or UNKNOWN in (run.value((*keys, k)) for k in ("devices", "num_nodes", "accelerator")):
        return False
    devices, nodes, kind = (run.value((*keys, k)) for k in ("devices", "num_nodes", "accelerator"))
    if nodes not in (None, "1"):
        return False
    return _ONE.fullmatch(devices or "") is not None or (devices in (None, "auto") and kind == "cpu")
