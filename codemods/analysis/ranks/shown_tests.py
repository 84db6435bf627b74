"""What tests of options and settings come out as in one run of a program, and how many processes its Trainer has there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from codemods.analysis.job_files.shown_run import UNKNOWN, Keys, ShownRun
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.one_device import lightning_trainers
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

_HOLDERS = lazy(r"(?:^|_)(?:cfg|conf|config|configs|args|opt|opts|hparams|params|settings)$")
_ONE = lazy(r"1|\[\s*\d+\s*,?\s*\]")
Roots = Mapping[str, Keys]
NO_ROOTS: Roots = MappingProxyType({})
_NEVER = 10_000_000  # steps between two validations
_SAID_TWICE = frozenset({"devices", "gpus", "num_nodes", "accelerator", "limit_val_batches", "val_check_interval"})
_OFF = frozenset({"false", "no", "off", "0", "0.0", ""})


def is_taken(module: SourceModule, node: ast.AST, run: ShownRun, roots: Roots = NO_ROOTS) -> bool:
    """False where a test of the run's settings keeps it off the place.

    roots: the names that hold a part of the settings, each with the keys that lead to it; without them, what is called so.
    """
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below is not up.test:
            wanted = any(below is s for s in up.body)
            if _outcome(up.test, run, roots) is (not wanted):
                return False
        if isinstance(below, ast.stmt):
            ends = (s for s in above(module, below) if isinstance(s, ast.If) and not s.orelse and leaves(s.body))
            if any(_outcome(s.test, run, roots) is True for s in ends):
                return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return True
        below = up
    return True


def _outcome(test: ast.expr, run: ShownRun, roots: Roots) -> bool | None:
    """None where the settings do not tell it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _outcome(test.operand, run, roots)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [_outcome(v, run, roots) for v in test.values]
        stop = isinstance(test.op, ast.Or)
        return stop if stop in parts else None if None in parts else not stop
    if isinstance(test, ast.Compare):
        return _compared(test, run, roots)
    path, optional = keys_read(test, roots)
    if not path or run.below(path) or (value := run.value(path)) == UNKNOWN:
        return None
    if value is None:
        return False if optional or path in run.values else None
    return value.lower() not in _OFF


def _compared(test: ast.Compare, run: ShownRun, roots: Roots) -> bool | None:
    path, optional = keys_read(test.left, roots)
    wanted = test.comparators[0]
    if len(test.ops) != 1 or not path or not isinstance(wanted, ast.Constant) or type(wanted.value) not in (str, int):
        return None
    value = run.value(path)
    if value == UNKNOWN or run.below(path) or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return None
    if value is None and not optional and path not in run.values:
        return None
    return (value == str(wanted.value)) is isinstance(test.ops[0], ast.Eq)


def keys_read(node: ast.expr, roots: Roots = NO_ROOTS) -> tuple[Keys, bool]:
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
    if roots is not NO_ROOTS:
        return ((*roots[node.id], *reversed(keys)), optional) if node.id in roots else ((), False)
    return (tuple(reversed(keys)), optional) if _HOLDERS.search(node.id) else ((), False)


# The Trainer


def trainer_has_one(module: SourceModule, node: ast.AST, run: ShownRun) -> bool:
    """True where the Trainer has one device of one node, and no launcher starts it several times.

    Of settings that make it, or made in the function round the node with options of the command line.
    """
    if run.several:
        return False
    if (keys := _trainer_keys(run) or _packed_keys(module, node)) is not None:
        return _is_one(*(_setting(run, (*keys, name)) for name in ("devices", "num_nodes", "accelerator")))
    made = [*lightning_trainers(module, module.function_of(node)), *_from_options(module, node)]
    return bool(made) and all(_made_with_one(module, call, run) for call in made)


def never_validates(module: SourceModule, node: ast.AST, run: ShownRun) -> bool:
    """True for a training whose settings leave validation out, or put it off for good."""
    if (keys := _trainer_keys(run) or _packed_keys(module, node)) is None:
        return False
    names = ("limit_val_batches", "num_sanity_val_steps", "val_check_interval")
    share, sanity, every = (_setting(run, (*keys, name)) for name in names)
    if share in ("0", "0.0"):
        return True
    return sanity == "0" and every is not None and every.replace("_", "").isdecimal() and int(every.replace("_", "")) >= _NEVER


def _trainer_keys(run: ShownRun) -> Keys | None:
    """The keys that lead to the settings of Lightning's Trainer; None where there is not one such place."""
    named = [p[:-1] for p, v in run.values.items() if p and p[-1] == "_target_" and v and _is_trainer(v)]
    return named[0] if len(named) == 1 else None


def _packed_keys(module: SourceModule, node: ast.AST) -> Keys | None:
    """Those of `Trainer(**cfg.trainer, callbacks=…)`, the one Trainer that the function round the node makes."""
    made = list(lightning_trainers(module, module.function_of(node)))
    given = {k.arg: k.value for k in made[0].keywords} if len(made) == 1 and not made[0].args else {}
    if None not in given or given.keys() & _SAID_TWICE or sum(k.arg is None for k in made[0].keywords) > 1:
        return None
    return keys_read(given[None])[0] or None


def _is_trainer(name: str) -> bool:
    return last(name) == "Trainer" and family(name) == "lightning"


def _from_options(module: SourceModule, node: ast.AST) -> Iterator[ast.Call]:
    for call in module.calls_named("from_argparse_args"):
        if module.function_of(call) is module.function_of(node) and _is_trainer(qualified(module, call.func).rpartition(".")[0]):
            yield call


def _made_with_one(module: SourceModule, call: ast.Call, run: ShownRun) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    if None in given:
        return False
    all_options = last(dotted(call.func)) == "from_argparse_args"
    names = ("devices", "gpus", "num_nodes", "accelerator")
    devices, gpus, nodes, kind = (_argument(run, given.get(name), name if all_options else "") for name in names)
    return _is_one(devices if devices is not None else gpus, nodes, kind)


def _argument(run: ShownRun, node: ast.expr | None, option: str) -> str | None:
    """What an argument has: a plain value, an option of the command, or for `from_argparse_args` the option of its name."""
    if node is None:
        return _setting(run, (option,)) if option else None
    if isinstance(node, ast.Constant):
        return None if node.value is None else str(node.value)
    keys, _ = keys_read(node)
    return _setting(run, keys) if keys else UNKNOWN


def _setting(run: ShownRun, keys: Keys) -> str | None:
    return UNKNOWN if run.below(keys) else run.value(keys)


def _is_one(devices: str | None, nodes: str | None, kind: str | None) -> bool:
    if nodes not in (None, "1"):
        return False
    return _ONE.fullmatch(devices or "") is not None or (devices in (None, "auto") and kind == "cpu")
