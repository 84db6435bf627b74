"""Gradients that a project averages itself: then a wrapper is left out on purpose."""

from __future__ import annotations

import re

from codemods.analysis.distribution import is_test_file
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# A norm of the gradients that is reduced for the log leaves the gradients as they are.
_GRADIENTS = rb"grad(?!(?:ient)?s?[ _.]?norm)"
_BY_HAND = lazy(
    rb"(?:all_?reduce|average|sync)\w*[^\n]{0,60}" + _GRADIENTS
    + rb"|" + _GRADIENTS + rb"\w*[^\n]{0,40}(?:all_?reduce|average_|sync)\w*\(",
    re.I,
)  # fmt: skip


def averages_by_hand(project: Project) -> bool:
    """True where a line of the project, outside its tests, speaks of reducing gradients."""

    def build() -> bool:
        paths = {p for word in (b"reduce", b"average", b"sync") for p in project.files_containing(word)}
        texts = (project.read(p) or b"" for p in paths if p.endswith(PYTHON_KINDS) and not is_test_file(p))
        # `accelerator.sync_gradients` says that the wrapper averages in this step: it averages nothing itself
        return any(_BY_HAND.search(text.replace(b".sync_gradients", b"")) for text in texts)

    return project.keep("gradients averaged by hand", build)
