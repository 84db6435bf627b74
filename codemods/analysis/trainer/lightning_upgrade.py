"""May code be written for a newer Lightning? What the pin, or the setting `target-lightning`, says of one change."""

from __future__ import annotations

import ast

from codemods.analysis.frameworks import Pin, lightning_pin, pinned_packages
from codemods.analysis.ranks.run_by_programs import has_programs
from codemods.analysis.ranks.unused import is_packaged
from codemods.analysis.trainer.gone_names import cannot_start_from
from codemods.analysis.unused_modules import is_unused
from codemods.analysis.version_branches import is_of_one_version, is_under_version_test
from codemods.analysis.version_pins import Version, padded, parse_version
from codemods.api.findings import Applicability, Evidence
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

PIP_TAKES = "pip takes 2.x today"


@record
class Standing:
    """How far the new spelling may be trusted. assumes: what is not shown, "" for SAFE."""

    level: Applicability
    assumes: str = ""
    evidence: tuple[Evidence, ...] = ()


def standing(project: Project, path: str, at: object, *, since: Version, gone: Version) -> Standing | None:
    """None where every Lightning that the project allows takes the old spelling; else how far the new one may be trusted.

    at: what it is asked of, for whoever watches the questions. The new spelling is there from `since` on, the old one up to
    `gone`; None also where `target-lightning` asks for a version below that, and where the program runs on versions below it
    alone, for it takes a name that is gone earlier; and of a file that nobody imports, in a project that installs no Lightning or
    is no package; and of what stands, is called or is imported under a test of a version.
    """
    target = parse_version(project.targets.get("lightning", ""))
    if target:
        if padded(target) < padded(gone):
            return None
        text = project.targets["lightning"]
        return Standing(Applicability.SAFE, evidence=(Evidence("version", f'target-lightning = "{text}"'),))
    if is_of_one_version(project, path, at):
        return None
    pin = lightning_pin(project, near=path)
    if pin is None and _is_never_installed(project, path):
        left(path, None, "no program imports this file, and the requirement files name torch and no Lightning")
        return None
    if _is_left_over(project, path):
        left(path, None, "no program of the project imports this file")
        return None
    if pin is not None and pin.surely_below(gone):
        return None
    ends = cannot_start_from(project, path)
    if ends is not None and padded(ends) < padded(gone) and not (pin is not None and pin.surely_at_least(ends)):
        return None
    shown = (Evidence("version", pin.text, pin.path, pin.line),) if pin is not None else ()
    if ends is not None and padded(since) >= padded(ends):
        why = f"{_text(ends)} lacks other names that this program takes: change them together"
        return Standing(Applicability.DISPLAY, why, shown)
    if since <= (1, 2) or (pin is not None and pin.surely_at_least(since)):
        return Standing(Applicability.SAFE, evidence=shown)
    if pin is not None and "||" in pin.spec:
        why = f"{pin.text} ({pin.path}:{pin.line}): the requirement files allow versions of which some lack the new spelling"
        return Standing(Applicability.DISPLAY, why, shown)
    return Standing(Applicability.UNSAFE, f"assumes {_text(since)} or newer: {_open(pin)}", shown)


def _is_never_installed(project: Project, path: str) -> bool:
    """True where nobody imports the file, and what the repository installs has torch, and no Lightning."""
    return "torch" in pinned_packages(project) and is_unused(project, path)


def _is_left_over(project: Project, path: str) -> bool:
    """True in a repository of programs that is no package, for a file that none of them imports."""
    return has_programs(project) and not is_packaged(project, path) and is_unused(project, path)


def _open(pin: Pin | None) -> str:
    if pin is None:
        return f"no file pins Lightning, so {PIP_TAKES}"
    allowed = f"{pin.text} ({pin.path}:{pin.line}) allows it"
    return allowed if pin.surely_below((2, 0)) else f"{allowed}, and {PIP_TAKES}"


def _text(version: Version) -> str:
    return f"Lightning {'.'.join(map(str, version))}"


def is_tried(module: SourceModule, node: ast.AST, *errors: str) -> bool:
    """True where the code asks which version runs: a `try` round it catches one of the errors, or a test of a version decides."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, ast.Try) and below not in up.finalbody:
            caught = [module.text_of(h.type) if h.type is not None else errors[0] for h in up.handlers]
            if any(word in text for text in caught for word in errors):
                return True
        below = up
    return is_under_version_test(module, node)
