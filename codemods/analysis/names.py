"""A dotted expression -> the qualified name it was imported as."""

from __future__ import annotations

import ast

from codemods.files.source import SourceModule, once_a_module

LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")


def dotted(node: ast.AST | None) -> str:
    """`a.b.c` for a chain of attributes on a name, "" for anything else."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest = f".{node.attr}{rest}"
        node = node.value
    return f"{node.id}{rest}" if isinstance(node, ast.Name) else ""


def end_of(node: ast.AST) -> str:
    """The last name of an expression, be it on a name or on a call: `is_main_process` of `Accelerator().is_main_process`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_parameter(module: SourceModule, name: str, at: ast.AST) -> bool:
    """True if `name` is a parameter of a function round `at`, and so hides an import of the same name."""
    if name not in _arguments(module):
        return False
    for up in module.ancestors(at):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            a = up.args
            named = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            if any(arg.arg == name for arg in named):
                return True
    return False


@once_a_module
def _arguments(module: SourceModule) -> frozenset[str]:
    return frozenset(argument.arg for argument in module.nodes(ast.arg))


def qualified(module: SourceModule, node: ast.AST | None) -> str:
    """The imported name of a dotted expression: `pl.Trainer` -> `pytorch_lightning.Trainer`.

    A root that no import binds is left as written (`self.log`, `print`); "" where the expression is no dotted name.
    Relative imports keep their leading dots.
    """
    name = dotted(node)
    if not name or node is None:
        return name
    root, _, rest = name.partition(".")
    imports = module.imports.get(root)
    if not imports or is_parameter(module, root, node):
        return name
    target = imports[0].dotted
    return f"{target}.{rest}" if rest else target


def imported_as(module: SourceModule, node: ast.AST | None) -> str:
    """The own name of what a `from` import brings under another one: `get_rank` for `r` of `import get_rank as r`; "" for
    anything else.
    """
    if not isinstance(node, ast.Name):
        return ""
    found = module.imports.get(node.id)
    return found[0].name if found and not is_parameter(module, node.id, node) else ""


def family(name: str) -> str:
    """The framework a qualified name belongs to: its first part, with all packages of Lightning as `lightning`."""
    root = name.partition(".")[0]
    return "lightning" if root in LIGHTNING else root


def last(name: str) -> str:
    return name.rpartition(".")[2]


def is_from(name: str, *families: str) -> bool:
    return family(name) in families
