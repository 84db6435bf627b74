"""Is a statement reached in the same way on every rank? What stands between it and the top of its function."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codemods.analysis.names import dotted
from codemods.source import FunctionNode, SourceModule, walk, walk_scope

# Attributes of self (or the trainer) that every rank holds the same value of.
_UNIFORM_ATTRIBUTES = frozenset(
    {"hparams", "cfg", "config", "args", "opt", "current_epoch", "global_step", "training", "trainer", "sanity_checking",
     "validating", "testing", "fit_loop", "max_epochs", "is_last_batch", "stage", "world_size", "logger"}
)  # fmt: skip
_UNIFORM_NAMES = frozenset(
    {"stage", "phase", "mode", "split", "prefix", "batch_idx", "train", "is_train", "training", "dataloader_idx",
     "step_type"}
)  # fmt: skip
_UNIFORM_CALLS = frozenset({"isinstance", "hasattr", "getattr", "len", "bool", "is_initialized", "get_world_size", "callable"})


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that can keep a rank from the statement. uniform: it looks the same on every rank."""

    text: str
    line: int
    uniform: bool


def conditions(module: SourceModule, node: ast.AST, function: FunctionNode) -> list[Condition]:
    """Every `if`, loop, `try`, early exit and nested function between the top of `function` and `node`."""
    found: list[Condition] = []
    below: ast.AST = node
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            found.append(Condition(f"if {_short(module, up.test)}", up.lineno, is_uniform(up.test, function)))
        elif isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            found.append(Condition("a loop", up.lineno, False))
        elif isinstance(up, (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
            found.append(Condition("a comprehension", up.lineno, False))
        elif isinstance(up, (ast.Try, ast.ExceptHandler)):
            found.append(Condition("a try block", up.lineno, False))
        elif isinstance(up, (ast.Match, ast.Lambda)):
            found.append(Condition(f"a {type(up).__name__.lower()}", up.lineno, False))
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(Condition(f"the inner function {up.name}", up.lineno, False))
        below = up
    return found + exits_above(module, node, function)


def exits_above(module: SourceModule, node: ast.AST, function: FunctionNode) -> list[Condition]:
    """Early returns above `node`. Those in another branch of an `if` that `node` stands in cannot keep a rank from it."""
    found = []
    line = node.lineno  # type: ignore[attr-defined]
    for leaving in walk_scope(function):
        if not isinstance(leaving, (ast.Return, ast.Continue, ast.Break)) or leaving.lineno >= line:
            continue
        if isinstance(leaving, (ast.Continue, ast.Break)) and not _same_loop(module, leaving, node):
            continue
        if _other_branch(module, leaving, node):
            continue
        tests = [up for up in module.ancestors(leaving) if isinstance(up, ast.If) and _inside(module, up, function)]
        uniform = bool(tests) and all(is_uniform(t.test, function) for t in tests)
        word = type(leaving).__name__.lower()
        text = f"the {word} under if {_short(module, tests[0].test)}" if tests else f"the {word} above it"
        found.append(Condition(text, leaving.lineno, uniform))
    return found


def _inside(module: SourceModule, node: ast.AST, function: FunctionNode) -> bool:
    return any(up is function for up in module.ancestors(node))


def _same_loop(module: SourceModule, leaving: ast.AST, node: ast.AST) -> bool:
    loop = next((up for up in module.ancestors(leaving) if isinstance(up, (ast.For, ast.While, ast.AsyncFor))), None)
    return loop is not None and any(up is loop for up in module.ancestors(node))


def _other_branch(module: SourceModule, leaving: ast.AST, node: ast.AST) -> bool:
    """True where some `if` holds `leaving` in one branch and `node` in the other."""
    chain = [node, *module.ancestors(node)]
    for up in module.ancestors(leaving):
        if isinstance(up, ast.If) and any(c is up for c in chain):
            return any(c is s for c in chain for s in up.orelse) != _holds(up.orelse, leaving, module)
    return False


def _holds(block: list[ast.stmt], node: ast.AST, module: SourceModule) -> bool:
    chain = [node, *module.ancestors(node)]
    return any(c is s for c in chain for s in block)


def _short(module: SourceModule, node: ast.AST) -> str:
    text = " ".join(module.text_of(node).split())
    return text if len(text) <= 50 else text[:47] + "..."


def is_uniform(test: ast.AST, function: FunctionNode) -> bool:
    """True where a test is made of configuration, counters and stage names only: the same answer on every rank.

    An attribute of self that is a plain flag counts only where its name says so; what comes from the batch never does.
    """
    for node in walk(test):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name.rpartition(".")[2] not in _UNIFORM_CALLS and not _uniform_chain(name):
                return False
        elif not _uniform_part(node):
            return False
    return True


def _uniform_part(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return _uniform_name(node.id)
    if isinstance(node, ast.Attribute):
        return not dotted(node) or _uniform_chain(dotted(node))
    return not isinstance(node, ast.Subscript) or _uniform_chain(dotted(node.value))


def _uniform_name(name: str) -> bool:
    return name in _UNIFORM_NAMES or name in _UNIFORM_CALLS or name in ("self", "trainer", "str", "int", "float", "torch", "dist")


def _uniform_chain(name: str) -> bool:
    parts = name.split(".")
    if parts[0] in ("self", "trainer", "torch", "dist"):
        return len(parts) == 1 or parts[1] in _UNIFORM_ATTRIBUTES or parts[-1] in _UNIFORM_CALLS | _UNIFORM_ATTRIBUTES
    return parts[0] in _UNIFORM_NAMES | _UNIFORM_ATTRIBUTES
