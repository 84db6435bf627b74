"""The framework versions that the project pins, with the file and line that say so."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename, dirname

from codemods.analysis.install_commands import (
    COMMAND_KINDS,
    INSTALL_KINDS,
    documented_pins,
    documents,
    installs,
    is_exact,
)
from codemods.analysis.pinned_beside import limited
from codemods.analysis.requirement_files import LOCK_FILES, normalized, read_pins, reader_of
from codemods.analysis.torch_companions import PACKAGES as COMPANIONS
from codemods.analysis.torch_companions import torch_of
from codemods.analysis.version_pins import Pin, Version
from codemods.store.project import Project

__all__ = [
    "Pin", "Version", "accelerate_pin", "joined", "lightning_pin", "or_by_companions", "pin_of", "pinned_packages",
    "pins", "torch_pin", "transformers_pin",
]  # fmt: skip

LIGHTNING_PACKAGES = ("pytorch-lightning", "lightning")
# A folder from which an image is built: its pins speak for the folder above where that has none.
_IMAGES = ("docker", "docker-context", "docker_context", "container", "environment")
_OF_A_PACKAGE = ("setup.py", "setup.cfg", "pyproject.toml")
_PARTS = 3  # of a version that names one release
# A pin for building the documentation says nothing of how the code is run.
_NOT_RUN = ("docs", "doc", ".github", "third_party", "node_modules", "site-packages")
_DOCS = ("docs", "doc")
_STEPS = ".github/workflows/"  # what a forge runs: of the folder, the steps alone
_COMMANDS = (b"install", b"download", b"wheel", b" create ", b" add ", b"--with")


def pins(project: Project, package: str) -> tuple[Pin, ...]:
    """Every pin of the package in the project, files nearer the root first."""
    return _all_pins(project).get(normalized(package), ())


def pinned_packages(project: Project) -> frozenset[str]:
    """The names of all packages that the project pins, as PEP 503 writes them."""
    return frozenset(_all_pins(project))


def lightning_pin(project: Project, *, near: str = "") -> Pin | None:
    """The pin of pytorch-lightning or lightning, whichever the project pins; what `target-lightning` asks for goes before it."""
    if target := project.targets.get("lightning", ""):
        return Pin("target-lightning", f"=={target}{'.*' if target.count('.') < _PARTS - 1 else ''}", "", 0)
    return pin_of(project, *LIGHTNING_PACKAGES, near=near)


def transformers_pin(project: Project, *, near: str = "") -> Pin | None:
    return pin_of(project, "transformers", near=near)


def torch_pin(project: Project, *, near: str = "") -> Pin | None:
    """The pin of torch; what torchvision's or torchaudio's comes to, where that says more in the same place, or says it alone."""
    companions = [pin_of(project, name, near=near) for name in COMPANIONS]
    nearest = or_by_companions(_nearest(project, "torch", near), companions)  # what stands beside the bare name says more of it
    return nearest if nearest is not None and _bounds(nearest) else pin_of(project, "torch", near=near)


def or_by_companions(pin: Pin | None, companions: Sequence[Pin | None]) -> Pin | None:
    """The pin of torch, or the first of its companions' that leaves one release and agrees with it."""
    if pin is not None and pin.below is not None:
        return pin
    for companion in companions:
        torch = torch_of(companion) if companion is not None and (pin is None or companion.path == pin.path) else None
        if torch is not None and (torch.below is not None or pin is None):
            if pin is None or pin.minimum is None or (torch.minimum is not None and torch.minimum >= _release(pin.minimum)):
                return torch
    return pin


def _release(version: Version) -> Version:
    """The first version of the release: a companion tells of no patches."""
    return (*version[:2], 0)


def accelerate_pin(project: Project, *, near: str = "") -> Pin | None:
    return pin_of(project, "accelerate", near=near)


def pin_of(project: Project, *packages: str, near: str = "") -> Pin | None:
    """The one pin that counts for the file `near` (or the whole project), None where no file names a package.

    The pins of the nearest folder above `near` count; there a lock file wins over ranges, and where several files (or
    both packages) disagree the pin allows what any of them allows, so that "surely" stays true in each environment.
    A folder that only names the package (`install_requires=["accelerate"]`) leaves its version to what is installed for the
    folders above; what a package there asks for itself is no word on a program that does not import it.
    """
    key = ("pin", packages, dirname(near))
    return project.keep(key, lambda: _pin_of(project, packages, dirname(near)))


def _pin_of(project: Project, packages: tuple[str, ...], folder: str) -> Pin | None:
    said = _said_above(project, packages, folder)
    found = next((pin for pin in said if _bounds(pin)), None) or next(iter(said), None)
    return found or joined([pin for package in packages for pin in pins(project, package)])


def _nearest(project: Project, package: str, near: str) -> Pin | None:
    """As `pin_of`, whether the nearest folder that names the package says a version or not."""
    return next(iter(_said_above(project, (package,), dirname(near))), None) or pin_of(project, package, near=near)


def _said_above(project: Project, packages: tuple[str, ...], folder: str) -> tuple[Pin, ...]:
    """What the folder and each one above it say of the packages that the nearest of them names, the nearest first."""
    return project.keep(("pins above", packages, folder), lambda: tuple(_find_above(project, packages, folder)))


def _find_above(project: Project, packages: tuple[str, ...], folder: str) -> Iterator[Pin]:
    found = [pin for package in packages for pin in pins(project, package)]
    below = False
    while True:
        here = [pin for pin in found if _home(pin.path) == folder] or [pin for pin in found if _built_in(pin.path) == folder]
        if below and any(basename(pin.path) in _OF_A_PACKAGE for pin in here):
            return
        if (pin := joined(here)) is not None:
            yield pin
            below = True
            found = [other for other in found if other.package in {one.package for one in here}]
        if not folder:
            return
        folder = dirname(folder)


def _bounds(pin: Pin) -> bool:
    return pin.bounds or pin.below is not None


def _home(path: str) -> str:
    """The folder a pin speaks for: `requirements/gpu.txt` speaks for the folder above."""
    folder = dirname(path)
    return dirname(folder) if basename(folder) in ("requirements", "envs", "environments", "conda") else folder


def _built_in(path: str) -> str | None:
    """The folder for whose code the image is built in which a pin stands, None where it stands in no folder of that kind."""
    folder = dirname(path)
    return dirname(folder) if basename(folder) in _IMAGES else None


def joined(found: Sequence[Pin]) -> Pin | None:
    """One pin for several: the lock files among them, else what any of them allows."""
    locked = [pin for pin in found if basename(pin.path).lower() in LOCK_FILES]
    bound = locked or [pin for pin in found if pin.bounds] or [pin for pin in found if pin.below] or found
    if not bound:
        return None
    first = bound[0]
    ranges = {(pin.minimum, pin.below) for pin in bound}
    if len(ranges) == 1:
        return first
    specs = " || ".join(dict.fromkeys(pin.spec for pin in bound))
    ends = [pin.below for pin in bound if pin.below is not None]
    limited_by = next((pin.beside for pin in bound if pin.beside), "") if len(ends) == len(bound) else ""
    return Pin(first.package, specs, first.path, first.line, max(ends) if limited_by else None, limited_by)


def _all_pins(project: Project) -> dict[str, tuple[Pin, ...]]:
    return project.keep("version pins", lambda: _read_all(project))


def _read_all(project: Project) -> dict[str, tuple[Pin, ...]]:
    out: dict[str, list[Pin]] = {}
    for path in _pinning_files(project.files):
        for pin in _read_together(path, project.read(path) or b""):
            out.setdefault(pin.package, []).append(pin)
    pinned = {package for package, found in out.items() if any(pin.spec for pin in found)}
    for path, only_exact in sorted(_saying_files(project).items(), key=lambda item: (item[0].count("/"), item[0])):
        for pin in documented_pins(path, project.read(path) or b""):
            if pin.package not in pinned and not (only_exact and not is_exact(pin)):  # a text is older than files of pins
                out.setdefault(pin.package, []).append(pin)
    return {package: tuple(found) for package, found in out.items()}


def _read_together(path: str, data: bytes) -> Iterable[Pin]:
    """The pins of one file, which are installed together: a torch in it bounds Lightning from above."""
    found = tuple(read_pins(path, data))
    if not any(pin.package in LIGHTNING_PACKAGES for pin in found):
        return found
    by_name: dict[str, list[Pin]] = {}
    for pin in found:
        by_name.setdefault(pin.package, []).append(pin)
    torch = or_by_companions(joined(by_name.get("torch", ())), [joined(by_name.get(name, ())) for name in COMPANIONS])
    python = joined(by_name.get("python", ()))
    return [limited(pin, torch, python, data) if pin.package in LIGHTNING_PACKAGES else pin for pin in found]


def _saying_files(project: Project) -> dict[str, bool]:
    """The texts and the commands that say what the repository runs with; true for those of which only one release counts.

    Scripts and images that install, and scripts that the instructions name, count in full. Any other script or CI file may be
    for something else: there a command that names one release is still what somebody ran the code with.
    """
    words = (b"nstall", b"==", b"<=", b"equire", b"requisite", b"ependenc")
    texts = {p for word in words for p in project.files_containing(word, kinds=(".md", ".rst", ".txt"))}
    files = {p for word in _COMMANDS for p in project.files_containing(word, kinds=COMMAND_KINDS)}
    said = {p for p in texts if documents(p) and is_run(p, told=True)}
    unnamed = {p for p in files if not installs(p)}
    told = [project.read(p) or b"" for p in project.files if unnamed and documents(p) and is_run(p)]
    named = {p for p in unnamed if p.endswith(INSTALL_KINDS) and any(os.fsencode(p) in text for text in told)}
    in_full = said | (files - unnamed) | named
    return {p: p not in in_full for p in said | files if p in said or is_run(p) or p.startswith(_STEPS)}


def _pinning_files(files: Iterable[str]) -> list[str]:
    named = [path for path in files if reader_of(path) and is_run(path)]
    return sorted(named, key=lambda path: (path.count("/"), path))


def is_run(path: str, *, told: bool = False) -> bool:
    """False below a folder whose pins say nothing of how the code is run.

    told: of a text that tells how to install the code, which stands in the documentation as well; its readme tells how that
    is built.
    """
    told = told and not basename(path).lower().startswith("readme")
    return not any(part in _NOT_RUN and not (told and part in _DOCS) for part in path.split("/")[:-1])
