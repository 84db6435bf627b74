"""A project as the server holds it: read once, with the texts of the editor in it, and what was found in each file.

A file that is typed in is judged alone, at once. What several files share is put together from what is known of all, so that a
file shows what `ddpfix check` says of it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from codemods.analysis.ranks.gate_names import gate_names
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.engine.reported_once import told_once
from codemods.runtime.record import replace
from codemods.store.live_project import LiveProject
from ddpfix import api, discovery, engine, judging, plugins
from ddpfix.discovery import Tree
from ddpfix.gate import Gate
from ddpfix.lsp.options import Options
from ddpfix.results import Failure, Judged
from ddpfix.settings import Settings

Stamp = tuple[int, int, int]


class Held:
    """Raises what `api.projects` raises. All but `root` is used by one thread.

    place: the folder of the project, or the one file that is looked at alone.
    """

    def __init__(self, place: Path, options: Options, interrupted: Callable[[], bool]) -> None:
        self.root = discovery.find_root(place) if place.is_dir() else place.parent
        self._place, self._options, self._interrupted = place, options, interrupted
        self._texts: dict[str, bytes] = {}  # of the editor, by path
        self._judged: dict[str, Judged] = {}
        self._since: set[str] = set()  # files that have changed since the last look at all of them began
        self._read()

    def _read(self) -> None:
        """Everything anew, but for the texts of the editor."""
        found = project_at(self._place, self._options, self._texts)
        self.settings: Settings = found.settings
        self.tree, self.codemods = plugins.with_codemods(found.tree, self.settings)
        disk = engine.disk_reader(self.root)
        self._stamps = self._stamped()
        self.project = LiveProject(
            self.tree.files, disk, observed=self.tree.observed, targets=self.settings.targets,
            launched=self.settings.launched,
        )  # fmt: skip
        self.project.interrupted = self._interrupted
        self.project.failed = {}
        self._gate, self._ranks = Gate(self.codemods), frozenset[str]()
        for path, data in self._texts.items():
            if path in self.tree.files:
                self.project.change(path, data)

    def _stamped(self) -> dict[str, Stamp]:
        out = {}
        for path in self.tree.files:
            try:
                about = os.lstat(self.root / path)
            except OSError:
                continue
            out[path] = (about.st_mtime_ns, about.st_size, about.st_ino)
        return out

    def is_checked(self, path: str) -> bool:
        """False for a file that the settings, git or a vendored folder leave out."""
        if path in self.tree.files or (self.root / path).exists():
            return path in self.tree.chosen
        return discovery.would_choose(path, self.settings.exclude, self.tree.copies)

    # Texts

    def write(self, path: str, data: bytes) -> None:
        """The editor's text of a file."""
        if self._texts.get(path) == data:
            return
        self._texts[path] = data
        self._since.add(path)
        if path in self.project.files:
            self.project.change(path, data)
        else:
            self._read()

    def close(self, path: str) -> None:
        """From now on the file on the disk counts."""
        if self._texts.pop(path, None) is None:
            return
        self._since.add(path)
        data = engine.disk_reader(self.root)(path)
        if data is None:
            self._judged.pop(path, None)
            self._read()
        else:
            self.project.change(path, data)

    def catch_up(self) -> None:
        """What others have written since the files were read: a few texts are changed, for more everything is read anew."""
        before, files = self._stamps, self.tree.files
        fresh = project_at(self._place, self._options, self._texts)
        if fresh.settings != self.settings or fresh.tree.files != files or fresh.tree.chosen != self.tree.chosen:
            self.read_anew()
            return
        self._stamps = self._stamped()
        read = engine.disk_reader(self.root)
        for path in (p for p, stamp in self._stamps.items() if before.get(p) != stamp and p not in self._texts):
            if (data := read(path)) is not None:
                self.project.change(path, data)
                self._since.add(path)
        self.project.refresh()

    def read_anew(self) -> None:
        self._read()
        self._judged = {p: j for p, j in self._judged.items() if p in self.tree.chosen}

    # Findings

    def judge(self, path: str) -> None:
        """Work out what is found in a file as it is now."""
        self.project.make_room()
        if self.project.failed is not None:
            self.project.failed.pop(path, None)
        if (ranks := gate_names(self.project)) != self._ranks:
            self._gate, self._ranks = Gate(self.codemods, ranks), ranks
        work, _ = judging.gated(self.project, [path], self.codemods, self._gate)
        asking = work.get(path, ())
        self._judged[path] = judging.judge_file(self.project, path, asking, self.settings) if asking else Judged()

    def refresh(self) -> bool:
        """Bring answers that may be stale up to date; False where none is."""
        if not self.project.is_stale:
            return False
        self.project.refresh()
        return True

    def findings(self, path: str) -> tuple[Finding, ...]:
        """What is shown at a file, in its order."""
        if not self.is_checked(path):
            return ()
        every = told_once(f for _, judged in sorted(self._judged.items()) for f in judged.findings)
        return tuple(sorted((f for f in every if f.path == path), key=lambda f: (f.span, f.code)))

    def broken(self, path: str) -> tuple[Failure, ...]:
        judged = self._judged.get(path)
        return judged.broken if judged and self.is_checked(path) else ()

    def begin_whole(self) -> Mapping[str, bytes]:
        """The texts for a look at all files, which is done elsewhere."""
        self._since = set()
        return dict(self._texts)

    def take_whole(self, found: Mapping[str, Judged]) -> None:
        """What that look came to; files that have changed since keep what is known of them by now."""
        newer = {p: j for p, j in self._judged.items() if p in self._since}
        ours = {p: j for p, j in self._judged.items() if p in self._texts and p not in self._since}
        if any(_found(j) != _found(found.get(p, Judged())) for p, j in ours.items()) and not self.project.is_stale:
            self._read()  # an answer was kept that should not have been: better slow than wrong
        self._judged = {**found, **newer}

    # Fixes

    def fixed_one(self, finding: Finding) -> dict[str, bytes]:
        """The files that the fix of one finding changes, with it. Raises RewriteError."""
        from codemods.rewriting.rewriter import rewrite_bytes

        out = {}
        for path in dict.fromkeys(e.path for e in finding.edits):
            module = self.project.seen_from(path).module(path)
            if module is not None:
                new = rewrite_bytes(module, [e for e in finding.edits if e.path == path])
                out[path] = engine.as_file(path, self.project.raw(path) or b"", new)
        return out

    def fixed_all(self, path: str, codemods: Sequence[DdpCodemod], accept: Callable[[Finding], bool]) -> dict[str, bytes]:
        """The files that change when all findings of a file are fixed which are accepted."""
        tree = replace(self.tree, chosen=(path,))
        return dict(engine.fix(tree, self.settings, codemods, accept, project=self.project).after)

    def ignored(self, finding: Finding, reason: str) -> dict[str, bytes]:
        """The file with a suppression comment at the finding. Raises RewriteError where the comment would not silence it."""
        from codemods.engine import suppressions
        from codemods.rewriting.rewriter import rewrite_bytes
        from ddpfix import silence

        here = self.project.seen_from(finding.path)
        module = here.module(finding.path)
        if module is None:
            return {}
        new = rewrite_bytes(module, suppressions.comments(module, [(finding, reason)]))
        silence.must_be_silent(here, finding.path, new, self.codemods, [finding])
        return {finding.path: engine.as_file(finding.path, self.project.raw(finding.path) or b"", new)}

    def now(self, path: str) -> bytes:
        return self.project.raw(path) or b""


def settle_memory() -> None:
    """Between two looks: collect what came since the last time, and leave what is there now out of each later collection.

    The collector is off otherwise: a look makes millions of nodes that stay, and each collection would go through all of them.
    """
    gc.collect()
    gc.freeze()


def _found(judged: Judged) -> Iterable[Finding]:
    return judged.findings


def project_at(place: Path, options: Options, texts: Iterable[str]) -> api.Project:
    """The project of a folder. Of a file that belongs to none the file alone: its folder may be anybody's home.

    texts: paths of open files, which need not be on the disk yet. Raises what `api.projects` raises.
    """
    if place.is_dir():
        found = api.projects(place, **options.asking())[0]
        tree, exclude = found.tree, found.settings.exclude
        new = [p for p in texts if not (tree.root / p).exists() and discovery.would_choose(p, exclude, tree.copies)]
        tree = replace(tree, files=tuple(sorted({*tree.files, *new})), chosen=tuple(sorted({*tree.chosen, *new})))
        return replace(found, tree=tree)
    given = options.asking()
    chosen = Settings(
        select=tuple(given["select"]), ignore=tuple(given["ignore"]), extend_select=tuple(given["extend_select"]),
        unsafe_fixes=given["unsafe_fixes"],
    )  # fmt: skip
    return api.Project(Tree(place.parent, (place.name,), (place.name,)), chosen)
