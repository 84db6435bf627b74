"""Is code meant for some versions of a package alone? By a test of the version round it, its calls, or its imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_own_test
from codemods.analysis.importing import users_of
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.uses import calls_of
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SAYS_VERSION = lazy(r"version", re.IGNORECASE)
# The version of a package, not of a model: `pl.__version__`, `version("torch")`, `TORCH_VERSION`, `_TORCH_GREATER_EQUAL_2_0`.
_OF_A_PACKAGE = lazy(r"__version__|\bversion\.parse\(|\bparse_version\(|Version\(|\bversion\([\"']|VERSION\b|_GREATER_|_LESS_")
_FILES = 12


def is_of_one_version(project: Project, path: str, at: object) -> bool:
    """True where each import of the file, or each call of the function that `at` stands in, is under a test of a version."""
    module = project.module(path)
    if module is None:
        return False
    if project.keep(("for a version", path), lambda: _is_imported_for_one(project, path)):
        return left(module, at, "the file is imported under a test of a version alone") if isinstance(at, ast.AST) else True
    return isinstance(at, ast.AST) and _is_called_for_one(project, module, at)


def is_under_version_test(module: SourceModule, node: ast.AST) -> bool:
    """True where an `if` round the place speaks of a version."""
    return any(_SAYS_VERSION.search(module.text_of(test)) for test in _tests_round(module, node))


def _is_under_package_test(module: SourceModule, node: ast.AST) -> bool:
    return any(_OF_A_PACKAGE.search(origin_text(module, test)) for test in _tests_round(module, node))


def _tests_round(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            yield up.test
        below = up


def _is_imported_for_one(project: Project, path: str) -> bool:
    users = [p for p in users_of(project, path) if not is_own_test(project, p)]
    if not users or len(users) > _FILES:
        return False
    return all((user := project.module(p)) is not None and _imports_for_one(project, user, path) for p in users)


def _imports_for_one(project: Project, user: SourceModule, path: str) -> bool:
    """True where the import statements that lead to the file are seen, and each is under such a test."""
    brought = (item for found in user.imports.values() for item in found)
    leading = [item for item in brought if (r := project.resolve(item.dotted, user.path)) is not None and r.path == path]
    return bool(leading) and all(_is_under_package_test(user, item.node) for item in leading)


def _is_called_for_one(project: Project, module: SourceModule, at: ast.AST) -> bool:
    function = module.function_of(at)
    if function is None or isinstance(module.parent(function), ast.ClassDef):
        return False
    calls = calls_of(project, module, function)
    if not calls or not all(_is_under_package_test(s.module, s.call) for s in calls):
        return False
    return left(module, at, "its function is called under a test of a version alone")
