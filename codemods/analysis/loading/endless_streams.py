"""Programs whose training never ends by itself: the stream of samples begins anew for ever, and nobody counts the steps."""

from __future__ import annotations

from codemods.analysis.loading.same_program import whole_program
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# `WebDataset(urls, resampled=True)` draws shards for ever (webdataset 0.2).
_ENDLESS = lazy(rb"(?m)^(?![ \t]*#)[^\n]*\bresampled[ ]*=[ ]*True\b")
_BOUNDED = lazy(rb"with_epoch|islice\(|\.slice\(|max_(?:train_)?(?:steps|iter\w*)|num_(?:steps|batches)|steps_per_epoch")
_LEAVES = lazy(rb"(?m)^[ \t]*break\b")


def trains_for_ever(project: Project, path: str) -> bool:
    """True for a program over such a stream that bounds it nowhere, and whose own file leaves no loop."""

    def ask() -> bool:
        if _LEAVES.search(project.read(path) or b""):
            return False
        texts = [project.read(p) or b"" for p in whole_program(project, path)]
        return any(_ENDLESS.search(t) for t in texts) and not any(_BOUNDED.search(t) for t in texts)

    if not any(project.files_containing(word) for word in (b"resampled=True", b"resampled = True")):
        return False
    return project.keep(("trains for ever", path), ask)
