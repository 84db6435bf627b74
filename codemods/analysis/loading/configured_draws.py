"""Draws in the training step of a model that a configuration names: `target: nets.diffusion.Denoiser`.

No import leads from the script to such a model. Its configuration is one that the script names as a file, or a command of the
repository starts it with; or any of them where the project has one script alone that fits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.draws import Draw, draws_in
from codemods.analysis.loading.seeds import seeded_by_rank
from codemods.analysis.model.config_targets import class_at
from codemods.analysis.model.wrapped_model import model_of
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_KINDS = (*YAML_KINDS, ".json")
_SPOKEN = (*SHELL_KINDS, *DOCUMENT_KINDS)
_MOST_FILES = 60
_WORDS = (b"target", b"class_path", b"model")
# a dotted name whose last part is written as a class
_NAMED = lazy(rb"(?<![\w./])([A-Za-z_]\w*(?:\.\w+)*\.[A-Z]\w*)(?![\w./])")


def configured_draws(project: Project, script: SourceModule) -> tuple[Draw, ...]:
    """The draws of the models of Lightning that a script fits by a configuration."""
    if script.path not in _fitting(project) or not _fits_unseen(project, script):
        return ()
    return project.memo(("configured draws", script.path), lambda: tuple(_found(project, script)))


def _found(project: Project, script: SourceModule) -> Iterator[Draw]:
    seen: set[int] = set()
    for site in _classes(project, script):
        facts = class_facts(project, site.module, site.node)
        if not facts.is_a(Role.LIGHTNING_MODULE):
            continue
        for above in facts.lineage:
            for draw in draws_in(project, above.module.path):
                if id(draw.call) not in seen and _is_run(project, site, above, draw):
                    seen.add(id(draw.call))
                    yield draw


def _is_run(project: Project, site: ClassSite, above: ClassSite, draw: Draw) -> bool:
    """True for a draw in a method of a class that an object of `site` has, and does not replace."""
    found = draw.module.method_of(draw.call)
    if found is None or found[0] is not above.node or seeded_by_rank(project, draw.module.path, of_process=True):
        return False
    own = class_facts(project, site.module, site.node).method(found[1].name)
    return own is not None and (own[1] is found[1] or "super()" in own[0].module.text_of(own[1]))


def _classes(project: Project, script: SourceModule) -> Iterator[ClassSite]:
    alone = len(_fitting(project)) == 1
    near = {p for word in _WORDS for p in project.files_containing(word, kinds=_KINDS) if not is_test_file(p)}
    spoken = b"" if alone else script.data + b"\n" + _commands(project, script.path)
    named = [p for p in sorted(near) if alone or re.search(rb"\b%b\b" % re.escape(os.fsencode(basename(p))), spoken)]
    names = {n for path in named[:_MOST_FILES] for n in _NAMED.findall(project.read(path) or b"")}
    found = (class_at(project, name.decode()) for name in sorted(names))
    yield from (site for site in found if site is not None)


def _commands(project: Project, path: str) -> bytes:
    """The commands in scripts and documents that start a file."""

    def build() -> bytes:
        name = os.fsencode(basename(path))
        texts = (project.read_text(p) or b"" for p in project.files_containing(name, kinds=_SPOKEN))
        lines = (line for text in texts for line in text.replace(b"\\\n", b" ").splitlines())
        return b"\n".join(line for line in lines if name in line)

    return project.keep(("commands that name", path), build)


def _fitting(project: Project) -> frozenset[str]:
    """The files that fit a model with a Trainer."""

    def build() -> frozenset[str]:
        fits = set(project.files_containing(b".fit(")).intersection(project.files_containing(b"Trainer"))
        return frozenset(p for p in fits if p.endswith(".py") and not is_test_file(p))

    return project.keep("files that fit", build)


def _fits_unseen(project: Project, script: SourceModule) -> bool:
    """True where a model is fitted whose class the code does not say."""
    for call in script.calls_named("fit"):
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model"), None)
        found = model_of(project, script, given) if given is not None else None
        if found is None or found.unknown or found.assumed or not found.classes:
            return True
    return False
