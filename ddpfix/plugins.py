"""Codemods that are not ours: a project's renames, the plug-ins that it names, and those that are installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from codemods.api.codemod import DdpCodemod
from codemods.runtime.record import record, replace
from ddpfix import catalog
from ddpfix.discovery import Tree
from ddpfix.results import Failure
from ddpfix.settings import Settings

NOT_ALLOWED = "a plug-in that the repository names itself: it is code, and runs only with --allow-plugins or after `ddpfix trust`"


_from_files: dict[str, DdpCodemod] = {}  # by code: those that this process has loaded, so that a summary can give their reasons


@record
class Chosen:
    """The codemods that the settings select, and the plug-ins that could not be used with the reason."""

    codemods: tuple[DdpCodemod, ...]
    failed: tuple[Failure, ...]


def chosen(settings: Settings, root: Path) -> Chosen:
    """What is to run over a project. Raises catalog.UnknownSelector."""
    failed = [Failure(name, f"plug-in, left out: {why}") for name, why in catalog.installed()[1]]
    more: list[DdpCodemod] = []
    if settings.rewrites:
        from ddpfix.project_renames import project_renames

        more += project_renames(settings.rewrites)
    taken = {c.code for c in catalog.all_codemods()}
    for name in settings.plugins:
        if not settings.allow_plugins:
            failed.append(Failure(name, NOT_ALLOWED, left_alone=True))
            continue
        classes, why = from_file(root / name, taken)
        taken |= {cls.code for cls in classes}
        loaded = [cls() for cls in classes]
        _from_files.update({c.code: c for c in loaded})
        more += loaded
        failed += [Failure(name, f"plug-in, left out: {reason}") for reason in why]
    among = catalog.selected(settings.selection, *more)
    words = [word for words in (settings.per_file_ignores or {}).values() for word in words]
    left_out = settings.plugins and not settings.allow_plugins  # their names are not known then
    catalog.check_words((w for w in words if not left_out or w.upper().startswith("DDP")), (*catalog.all_codemods(), *more))
    return Chosen(among, tuple(failed))


def with_codemods(tree: Tree, settings: Settings) -> tuple[Tree, tuple[DdpCodemod, ...]]:
    """The codemods to run over a tree, and the tree with the plug-ins that could not be used among what is skipped."""
    found = chosen(settings, tree.root)
    return replace(tree, skipped=(*tree.skipped, *found.failed)), found.codemods


def lookup(word: str) -> DdpCodemod:
    """The codemod of that code or name, those of a project's renames and of plug-ins that run included.

    Raises catalog.UnknownSelector.
    """
    if word.upper().startswith("PRJ") or word.lower() == "project-rename":
        from ddpfix.project_renames import kind_of

        if found := kind_of(word.upper()):
            return found
    return _from_files.get(word.upper()) or catalog.lookup(word)


def from_file(path: Path, taken: set[str]) -> tuple[list[type[DdpCodemod]], list[str]]:
    """(the codemods that a Python file defines, why others of it cannot be used). The file is run."""
    try:
        module = _run(path)
    except Exception as error:  # somebody else's code: whatever it raises, the run goes on without it
        return [], [" ".join(f"{type(error).__name__}: {error}".split())]
    classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, DdpCodemod)]
    own = [c for c in classes if c.__module__ == module.__name__]
    if not own:
        return [], ["it defines no DdpCodemod"]
    good: list[type[DdpCodemod]] = []
    why: list[str] = []
    for cls in own:
        if reason := catalog.misfit(cls, taken | {c.code for c in good}) or _abstract(cls):
            why.append(reason)
        else:
            good.append(cls)
    return good, why


def _abstract(cls: type[DdpCodemod]) -> str:
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    return f"{cls.__name__} has no {missing[0]}()" if missing else ""


def _run(path: Path) -> ModuleType:
    """The module of a file, under a name that nothing else has; its folder is not put on the path."""
    name = f"ddpfix_plugins_{abs(hash(path))}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no __pycache__ in the user's repository
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = written
    return module
