"""`make quick`: lint, types and the tests of what changed, in under a minute; `make test` runs the rest.

A change is what differs from the merge base with the main branch (BASE=… takes another one), with files that git does not know
yet. Its tests, in this order until there are MOST files: those that carry its name, those that import it, the audits of each
codemod among it, then the same for the modules that import it, and so on. What starts training programs or a browser is left
out, but for tests and proofs that changed themselves. After SECONDS no further test is begun; what was not run is said.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("codemods", "ddpfix")
MOST = 12  # files of tests, those that changed and the audits aside
SECONDS = 40.0
PROOFS = 3
SLOW = ("proof", "torch", "browser")
LAYERS = "tests/test_layers.py"
AUDITS = (  # of a codemod: they ask the same of each, and only what is asked of those that changed is run
    LAYERS, "tests/test_codemod_docs.py", "tests/test_catalog.py", "tests/test_metamorphic.py", "tests/proofs/test_coverage.py",
)  # fmt: skip
RUNNER = "tests/proofs/test_proofs.py"


@dataclass
class Choice:
    """The files of tests to run, in their order, and the words of which one has to stand in the name of an audit's test."""

    files: list[str] = field(default_factory=list)
    changed: frozenset[str] = frozenset()
    words: set[str] = field(default_factory=set)
    proofs: list[str] = field(default_factory=list)

    def add(self, paths: Iterable[str]) -> None:
        self.files += [p for p in paths if p not in self.files]


# What changed


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def base() -> str:
    """The commit that the work began at."""
    own = git("rev-parse", "--abbrev-ref", "HEAD")
    for name in (os.environ.get("BASE", ""), *(n for n in ("main", "origin/main") if n != own)):
        if name and (found := git("merge-base", "HEAD", name)):
            return found
    return "HEAD"


def changed_files() -> list[str]:
    names = {*git("diff", "--name-only", "--no-renames", base()).splitlines(),
             *git("ls-files", "--others", "--exclude-standard").splitlines()}  # fmt: skip
    return sorted(names)


# Which tests belong to it


class Files:
    """The Python files of the project, and who imports whom."""

    def __init__(self, root: Path) -> None:
        self.root = root
        found = [p for room in (*ROOMS, "tests") for p in sorted((root / room).rglob("*.py"))]
        self.texts = {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in found}
        self.tests = [p for p in self.texts if p.startswith("tests/") and p.rpartition("/")[2].startswith("test_")]

    def named_after(self, path: str) -> list[str]:
        """tests/…/test_<name>.py, those in the folder of the same name first."""
        stem = Path(path).parent.name if path.endswith("/__init__.py") else Path(path).stem
        found = [t for t in self.tests if Path(t).stem == f"test_{stem}"]
        rooms = set(Path(path).parts)
        return sorted(found, key=lambda t: not rooms & set(Path(t).parts[1:-1]))

    def importers(self, paths: Iterable[str]) -> list[str]:
        wanted = {module_of(p) for p in paths}
        last = {name.rpartition(".")[2] for name in wanted}
        near = (p for p, text in self.texts.items() if any(word in text for word in last))
        return [p for p in near if wanted & imported(self.texts[p])]


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(text: str) -> set[str]:
    """The modules that a file may import: of `from a import b`, both `a` and `a.b`."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            out |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return out


def chosen(changed: Sequence[str], files: Files) -> Choice:
    out = Choice(changed=frozenset(changed))
    out.add(p for p in changed if p in files.tests)
    out.proofs = sorted({p.split("/")[2] for p in changed if p.startswith("fixtures/proofs/") and p.count("/") > 2})[:PROOFS]
    level = [p for p in changed if p.startswith(ROOMS) and p in files.texts]
    for path in level:
        out.words |= {module_of(path), f"-{Path(path).stem.replace('_', '-')}]"}  # as in [DDP115-wrong-average]
    helpers = [p for p in changed if p.startswith("tests/") and p in files.texts and p not in files.tests]
    out.add(t for t in files.importers(helpers)[:MOST] if t in files.tests)
    if any(is_codemod(p, files) for p in level):
        out.add(AUDITS)
    elif level:
        out.add([LAYERS])
    if any(p.endswith(".md") for p in changed):
        out.add(["tests/test_docs.py"])
    most = len(out.files) + MOST
    for tests in _nearest_first(level, files):
        out.add(tests[: max(most - len(out.files), 0)])
    return out


def is_codemod(path: str, files: Files) -> bool:
    return "DdpCodemod)" in files.texts[path]


def _nearest_first(level: Sequence[str], files: Files) -> Iterator[list[str]]:
    """The tests of the changed modules, then those of the modules that import them, until there are no more."""
    seen: set[str] = set()
    while level:
        seen |= set(level)
        for path in level:
            yield files.named_after(path)
        above = files.importers(level)
        rooms = {part for path in level for part in Path(path).parts[:-1]}
        yield sorted((p for p in above if p in files.tests), key=lambda t: not rooms & set(Path(t).parts[1:-1]))
        level = [p for p in above if p.startswith(ROOMS) and p not in seen]


# Running


class Limits:
    """A pytest plugin: what is left out of the chosen files, and the end of the time."""

    def __init__(self, choice: Choice, until: float) -> None:
        self.choice = choice
        self.until = until
        self.late: list[str] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept: list[pytest.Item] = []
        out: list[pytest.Item] = []
        for item in items:
            (kept if self.belongs(item) else out).append(item)
        config.hook.pytest_deselected(items=out)
        items[:] = kept

    def belongs(self, item: pytest.Item) -> bool:
        path, _, name = item.nodeid.partition("::")
        if path == RUNNER:
            return any(f"[{proof}]" in name for proof in self.choice.proofs)
        if path in AUDITS and "[" in name and path not in self.choice.changed:
            return any(word in name for word in self.choice.words)
        return path in self.choice.changed or not any(item.get_closest_marker(mark) for mark in SLOW)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if time.monotonic() < self.until:
            return None
        self.late.append(item.nodeid.partition("::")[0])
        return True  # it is done with


def main() -> int:
    until = time.monotonic() + SECONDS
    changed = changed_files()
    choice = chosen(changed, Files(ROOT))
    tools = {name: _started(name, *words) for name, *words in (("ruff", "check", "."), ("mypy",))}
    limits = Limits(choice, until)
    files = [*([RUNNER] if choice.proofs else []), *choice.files]
    status = int(pytest.main([*files, "-p", "no:cacheprovider"], plugins=[limits])) if files else 0
    status = 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status
    for name, process in tools.items():
        said, _ = process.communicate()
        print(f"{name}: {said.strip()}")
        status = status or process.returncode
    print(f"{len(changed)} files differ from {base()[:12]}; tests of {len(files)} files were chosen: {' '.join(files) or 'none'}")
    if limits.late:
        print(f"no time was left for {len(limits.late)} tests of {' '.join(dict.fromkeys(limits.late))}: make test")
    return status


def _started(name: str, *words: str) -> subprocess.Popen[str]:
    """A tool of this environment, beside the tests."""
    command = [sys.executable, "-m", name, *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


if __name__ == "__main__":
    sys.exit(main())
