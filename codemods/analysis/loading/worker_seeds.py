"""Seeds that leave the workers of the loaders other numbers on each rank, or that no run sets."""

from __future__ import annotations

import ast
import re
from functools import partial

from codemods.analysis.loading.seeds import Seed
from codemods.analysis.names import last, qualified
from codemods.files.source import walk
from codemods.store.project import Project


def leaves_workers(seed: Seed) -> bool:
    """True for `seed_everything(seed, workers=True)` of Lightning: each loader gets a `worker_init_fn` with the rank in it."""
    given = next((k.value for k in seed.call.keywords if k.arg == "workers"), None)
    if given is None or last(qualified(seed.module, seed.call.func)) != "seed_everything":
        return False
    return not (isinstance(given, ast.Constant) and not given.value)


def is_never_set(project: Project, seed: Seed) -> bool:
    """True under `if cfg.get("seed"):` where the configuration files have lines for it, and each is a comment or empty."""
    tests = (up.test for up in seed.module.ancestors(seed.call) if isinstance(up, ast.If))
    keys = (_key(node) for test in tests for node in walk(test))
    return any(key and project.keep(("never set", key), partial(_is_commented_out, project, key)) for key in keys)


def _key(node: ast.AST) -> str:
    """`seed` for `cfg.get("seed")`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "get":
        return ""
    key = node.args[0] if len(node.args) == 1 else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _is_commented_out(project: Project, key: str) -> bool:
    word = key.encode()
    lines = [
        line.strip()
        for path in project.files_containing(word, kinds=(".yaml", ".yml"))
        for line in (project.read(path) or b"").splitlines()
        if re.match(rb"[\s#]*" + re.escape(word) + rb"\s*:", line)
    ]
    return bool(lines) and all(re.fullmatch(rb"#.*|[^:]*:\s*(null|~)?\s*(#.*)?", line) for line in lines)
