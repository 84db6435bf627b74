"""What happens between an editor and its projects: which file is looked at when, and what is shown of it.

Methods are called in the thread of the protocol; what a job does is done by the worker, and sends through `post`.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from lsprotocol import types

from codemods.api.findings import Finding
from codemods.runtime.record import record
from ddpfix import discovery
from ddpfix.catalog import UnknownSelector
from ddpfix.discovery import NoSuchPath
from ddpfix.lsp import diagnostics
from ddpfix.lsp.documents import Document
from ddpfix.lsp.held import Held, settle_memory
from ddpfix.lsp.options import Options
from ddpfix.lsp.timers import Timers
from ddpfix.lsp.whole import Request, Whole, WholeFailed
from ddpfix.lsp.worker import Worker
from ddpfix.results import Failure
from ddpfix.settings import SettingsError

TYPING = 0.03  # seconds without a keystroke, then the file is looked at
PAUSE = 0.7  # then what the change means for other answers
SAVED = 0.3  # after a save, and after other programs wrote files, then the whole project


@record
class Shown:
    """A finding where the editor shows it."""

    finding: Finding
    uri: str
    where: types.Range


class Client(Protocol):
    """The editor, from any thread."""

    def publish(self, uri: str, version: int | None, found: Sequence[types.Diagnostic]) -> None: ...
    def tell(self, text: str) -> None: ...
    def log(self, text: str) -> None: ...
    def show_progress(self, title: str) -> Callable[[int, int], None]:
        """Begins; what is returned reports, and ends with the last of all."""


class Session:
    """folders: those that the editor has opened."""

    def __init__(self, client: Client, options: Options, folders: Sequence[Path], timers: Timers) -> None:
        self.options, self.folders = options, list(folders)
        self.documents: dict[str, Document] = {}
        self.shown: dict[str, tuple[Shown, ...]] = {}
        self.worker = Worker(lambda error: client.log(f"{type(error).__name__}: {error}"))
        self._client, self._timers = client, timers
        self._held: dict[Path, Held | None] = {}  # None: its settings cannot be used, which was said
        self._due: set[str] = set()
        self._whole: dict[Path, Whole | None] = {}
        self._again: set[Path] = set()

    # What the editor says

    def open(self, uri: str, document: Document) -> None:
        self.documents[uri] = document
        self.worker.do(partial(self._look, uri, told=True))
        self.worker.do(gc.freeze)  # what a first look reads stays: no collection need go through it
        self._timers.after(SAVED, "whole", partial(self._look_at_all, [self.place(document)]))

    def change(self, uri: str, document: Document) -> None:
        self.documents[uri] = document
        self._timers.after(TYPING, uri, lambda: self.worker.do(partial(self._look, uri)))
        self._timers.after(PAUSE, "pause", lambda: self.worker.do_later(self._settle))

    def save(self, uri: str) -> None:
        if uri in self.documents:
            self.worker.do(partial(self._look, uri, told=True))
            self.disk_changed()

    def disk_changed(self) -> None:
        self._timers.after(SAVED, "disk", self._catch_up)

    def close(self, uri: str) -> None:
        document = self.documents.pop(uri, None)
        self._timers.cancel(uri)
        if document is not None:
            for shown in document.uris:
                self.shown.pop(shown, None)
                self._client.publish(shown, None, [])
            self.worker.do(partial(self._close, document))

    def configure(self, options: Options) -> None:
        if options == self.options:
            return
        self.options = options
        self.worker.do(self._held.clear)
        for uri, document in self.documents.items():
            self.open(uri, document)

    def end(self) -> None:
        self.worker.end()
        self._again.clear()
        for whole in self._whole.values():
            if whole is not None:
                whole.end()

    def place(self, document: Document) -> Path:
        """The folder of its project, or the file itself where it belongs to none."""
        path = document.path.resolve()
        root = discovery.find_root(path)
        if (root / ".git").exists() or any((root / mark).is_file() for mark in discovery.ROOT_MARKS):
            return root
        return next((f.resolve() for f in self.folders if path.is_relative_to(f.resolve())), path)

    # Jobs

    def held(self, document: Document) -> tuple[Held | None, str]:
        """(its project, its path there). For a job."""
        place = self.place(document)
        if place not in self._held:
            try:
                self._held[place] = Held(place, self.options, self.worker.is_wanted_elsewhere)
            except (SettingsError, UnknownSelector, NoSuchPath) as error:
                self._held[place] = None
                self._client.tell(f"ddpfix: {error}")
        held = self._held[place]
        return held, document.path.resolve().relative_to(held.root).as_posix() if held else ""

    def _look(self, uri: str, *, told: bool = False) -> None:
        """Judge a file by its text and show it. told: also that it cannot be read; while one types it seldom can."""
        document = self.documents.get(uri)
        held, path = self.held(document) if document else (None, "")
        if document is None or held is None or not held.is_checked(path):
            return
        try:
            held.write(path, document.data())
        except ValueError as error:
            if told:
                self._show(held, document, (), (Failure(path, str(error)),))
            return
        if not told:  # of no use once there is a newer text, which is looked at in its turn
            self.worker.outdated = lambda: self.documents.get(uri) is not document
        held.judge(path)
        broken = held.broken(path)
        if told or not broken or any(f.path == path for f in held.findings(path)):
            self._show(held, document, held.findings(path), broken)

    def _settle(self) -> None:
        """What was typed may mean something to other answers, and to the other files that are open."""
        for held in filter(None, self._held.values()):
            if held.refresh():
                self._due |= {u for u, d in self.documents.items() if self.held(d)[0] is held}
        for uri in sorted(self._due):
            self._look(uri)
            self._due.discard(uri)
        settle_memory()

    def _catch_up(self) -> None:
        self.worker.do(self._read_disk)
        self._look_at_all({self.place(d) for d in self.documents.values()})

    def _read_disk(self) -> None:
        for place, held in list(self._held.items()):
            if held is None:
                del self._held[place]
            else:
                try:
                    held.catch_up()
                except (SettingsError, UnknownSelector, NoSuchPath) as error:
                    self._held[place] = None
                    self._client.tell(f"ddpfix: {error}")
        for uri in list(self.documents):
            self._look(uri, told=True)

    def _close(self, document: Document) -> None:
        held, path = self.held(document)
        if held is not None:
            held.close(path)

    def _show(self, held: Held, document: Document, found: Iterable[Finding], broken: Iterable[Failure]) -> None:
        rows = [Shown(f, *document.place(f)) for f in found]
        made = {uri: [diagnostics.diagnostic(r.finding, r.where, held.root, lambda _, line: line) for r in rows if r.uri == uri]
                for uri in document.uris}  # fmt: skip
        made[document.uris[0]] += [diagnostics.unread(f) for f in broken]
        if document is not self.documents.get(document.uris[0]):
            return  # it was closed, or is newer by now and will be looked at again
        for uri in document.uris:
            self.shown[uri] = tuple(r for r in rows if r.uri == uri)
            self._client.publish(uri, document.version if uri == document.uris[0] else None, made[uri])

    # The whole project

    def _look_at_all(self, places: Iterable[Path]) -> None:
        for place in places:
            if place in self._whole and self._whole[place] is not None:
                self._again.add(place)
            else:
                self.worker.do(partial(self._begin_whole, place))

    def _begin_whole(self, place: Path) -> None:
        held = self._held.get(place)
        if held is None or self._whole.get(place) is not None:
            return
        whole = self._whole[place] = Whole(Request(str(place), self.options, held.begin_whole()))
        threading.Thread(target=self._run_whole, args=(place, held, whole), daemon=True).start()

    def _run_whole(self, place: Path, held: Held, whole: Whole) -> None:
        progress = self._client.show_progress(f"ddpfix: {held.root.name}")
        try:
            found = whole.answer(progress)
        except WholeFailed:
            found = None
        progress(1, 1)

        def take() -> None:
            self._whole[place] = None
            if found is not None and self._held.get(place) is held:
                held.take_whole(found)
                for uri, document in list(self.documents.items()):
                    if self.place(document) == place and uri not in self._due:
                        path = self.held(document)[1]
                        self._show(held, document, held.findings(path), held.broken(path))
            if place in self._again:
                self._again.discard(place)
                self._begin_whole(place)

        self.worker.do(take)
