"""The kit for authors of codemods: what a codemod makes of a text, asserted as the user would see it.

    check_transformed(UnsyncedMetric, before, after)
    check_told(UnsyncedMetric, source, reason="another name")
    check_nothing(UnsyncedMetric, source)
    check_proved(UnsyncedMetric, folder, "train.py")

Every check parses its input first, so a text that is no Python cannot pass as "nothing found"; every transformation is run a
second time and must find nothing to do, and once more with CRLF line ends.
"""

from __future__ import annotations

import ast
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from codemods.analysis.ranks.gate_names import gate_names
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding
from codemods.engine.fix_source import Accept, FixResult, fix_project, safe, with_unsafe
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project
from ddpfix.gate import Gate

MAIN = "module.py"


def project_of(source: str, files: Mapping[str, str] | None = None, *, path: str = MAIN) -> Project:
    """A project in memory: `source` at `path`, and other files; all dedented, all Python parsed."""
    texts = {path: textwrap.dedent(source), **{p: textwrap.dedent(t) for p, t in (files or {}).items()}}
    for name, text in texts.items():
        if name.endswith(".py"):
            ast.parse(text)
    return Project.of({name: text.encode() for name, text in texts.items()})


def plugged_in(path: Path) -> list[type[DdpCodemod]]:
    """The codemods of a plug-in's file, as ddpfix loads it; fails with the reason where one of them cannot be used."""
    from ddpfix.plugins import from_file

    classes, problems = from_file(path, set())
    assert not problems, problems
    return classes


def gate_open(codemod: DdpCodemod, module: SourceModule, project: Project) -> bool:
    """True if the byte gate lets this file through to the codemod."""
    gate = _gate(type(codemod), gate_names(project))
    return bool(gate.open_for(module.data, module.path if isinstance(module, TextFile) else ""))


@cache
def _gate(codemod: type[DdpCodemod], ranks: frozenset[str]) -> Gate:
    """Made once: with hundreds of words it takes longer than a small test."""
    return Gate([codemod()], ranks)


def findings_of(
    codemod: type[DdpCodemod], source: str, files: Mapping[str, str] | None = None, *, path: str = MAIN
) -> list[Finding]:
    """The codemod's findings in `source`, by its gate."""
    from codemods.engine.find import find_in

    project = project_of(source, files, path=path)
    module = project.module(path)
    assert module is not None
    instance = codemod()
    return find_in(module, project, [instance]) if gate_open(instance, module, project) else []


def fix(
    codemod: type[DdpCodemod], source: str, files: Mapping[str, str] | None = None, *, path: str = MAIN, accept: Accept = safe
) -> FixResult:
    """What fixing `source` (and the files its fix reaches) comes to."""
    return _fix(codemod, project_of(source, files, path=path), path, accept)


def _fix(codemod: type[DdpCodemod], project: Project, path: str, accept: Accept) -> FixResult:
    instance = codemod()
    module = project.module(path)
    assert module is not None
    work = {path: [instance]} if gate_open(instance, module, project) else {}
    return fix_project(project, lambda _p, _paths: work, [path], accept)


def check_transformed(
    codemod: type[DdpCodemod],
    before: str,
    after: str,
    *,
    files: Mapping[str, str] | None = None,
    changed: Mapping[str, str] | None = None,
    path: str = MAIN,
    unsafe: bool = False,
) -> tuple[Finding, ...]:
    """Assert that fixing turns `before` into `after` (and other files into `changed`); the fixed findings.

    unsafe: the fix is one that only `--unsafe-fixes` makes; without it the text must then stay as it is.
    """
    project = project_of(before, files, path=path)
    wanted = textwrap.dedent(after)
    if path.endswith(".py"):
        ast.parse(wanted)
    accept = with_unsafe if unsafe else safe
    if unsafe:
        assert not _fix(codemod, project, path, safe).changed, "an unsafe fix was made without being asked for"
    result = _fix(codemod, project, path, accept)
    assert not result.withdrawn, [reason for _, reason in result.withdrawn]
    got = result.changed.get(path, project.read(path) or b"").decode()
    assert got == wanted, f"\n--- wanted\n{wanted}\n--- got\n{got}"
    others = {name: data.decode() for name, data in result.changed.items() if name != path}
    assert others == {name: textwrap.dedent(text) for name, text in (changed or {}).items()}, "other files changed otherwise"
    again = _fix(codemod, project.with_overlay(result.changed), path, accept)
    assert not again.changed, f"a second run changes it again:\n{again.changed.get(path, b'').decode()}"
    _check_crlf(codemod, project, path, accept, wanted)
    return result.fixed


def _check_crlf(codemod: type[DdpCodemod], project: Project, path: str, accept: Accept, wanted: str) -> None:
    data = project.read(path) or b""
    if b"\r" in data or b"\\\n" in data:
        return
    crlf = project.with_overlay({path: data.replace(b"\n", b"\r\n")})
    got = _fix(codemod, crlf, path, accept).changed.get(path)
    assert got == wanted.encode().replace(b"\n", b"\r\n"), "with CRLF line ends the result differs"


def check_told(
    codemod: type[DdpCodemod], source: str, *, reason: str, files: Mapping[str, str] | None = None, path: str = MAIN
) -> Finding:
    """Assert that there is a finding without a fix, whose reason holds `reason`, and that nothing is changed."""
    found = findings_of(codemod, source, files, path=path)
    told = [f for f in found if f.applicability is Applicability.DISPLAY]
    assert told, f"nothing was reported; found {[(f.message, f.applicability.value) for f in found]}"
    hits = [f for f in told if reason in f.reason or reason in f.message]
    assert hits, f"no reason says {reason!r}: {[f.reason or f.message for f in told]}"
    assert not fix(codemod, source, files, path=path, accept=with_unsafe).changed or len(found) > len(told)
    return hits[0]


def check_nothing(
    codemod: type[DdpCodemod], source: str, *, files: Mapping[str, str] | None = None, path: str = MAIN
) -> None:
    """Assert that the codemod has nothing to say."""
    found = findings_of(codemod, source, files, path=path)
    assert not found, [(f.span.line, f.message, f.reason) for f in found]


def check_proved(
    codemod: type[DdpCodemod], folder: Path, *command: str, unsafe: bool = False, nproc: int = 2, timeout: float = 120
) -> None:
    """Assert that the program in `folder` goes wrong as `nproc` processes on the CPU, and right after the fix. Needs torch.

    command: the program's file, and its arguments. It is run in a copy: nothing is written in `folder`. timeout: seconds for
    each of the two runs.
    """
    from ddpfix import discovery
    from ddpfix.prove import proof as proofs
    from ddpfix.settings import Settings

    with tempfile.TemporaryDirectory(prefix="ddpfix-proof-") as place:
        copy = Path(place) / folder.name
        shutil.copytree(folder, copy)
        (copy / "ddpfix.toml").touch()  # the root of this project is here, whatever stands above
        (tree,) = discovery.discover([copy])
        bounds = proofs.Bounds(nproc, 0, timeout, 0)
        settings = Settings(unsafe_fixes=unsafe)
        made = proofs.prove(tree, settings, [codemod()], [sys.executable, *command], cwd=copy, bounds=bounds)
    assert not made.impossible, f"the program cannot run here: {made.impossible}\n{made.output}"
    assert not made.before.right, "the program runs right without the fix, so it proves nothing"
    assert made.after is not None, f"{codemod.__name__} has nothing to fix in the program"
    assert made.after.right, f"the program goes wrong after the fix, too:\n{made.output}"
