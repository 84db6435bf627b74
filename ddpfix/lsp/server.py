"""The server itself: what the protocol asks for, handed to the session."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from ddpfix import __version__
from ddpfix.lsp import actions, hover
from ddpfix.lsp.documents import Cell, Document, Notebook, TextFile, text_of
from ddpfix.lsp.options import options
from ddpfix.lsp.pages import page_text, page_uri
from ddpfix.lsp.places import edits, uri_of
from ddpfix.lsp.session import Session, Shown
from ddpfix.lsp.timers import Timers

WATCHED = "**/*.{py,ipynb,yaml,yml,json,toml,cfg,txt,sh,md}"
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(types.NotebookDocumentFilterNotebookType("jupyter-notebook"))]
)


class Server(LanguageServer):
    """Texts are sent whole: pygls breaks lines at form feeds, too, and would put changes of parts in the wrong line."""

    session: Session

    def __init__(self) -> None:
        super().__init__("ddpfix", __version__, types.TextDocumentSyncKind.Full, _NOTEBOOKS)
        self._tokens = itertools.count(1)

    def start(self, params: types.InitializeParams) -> None:
        self._loop = asyncio.get_running_loop()
        roots = [f.uri for f in params.workspace_folders or ()] or [params.root_uri or ""]
        folders = [Path(path) for uri in roots if uri and (path := to_fs_path(uri))]
        self.session = Session(self, options(params.initialization_options), folders, Timers(self._loop))

    # What the session sends, from any thread

    def _post(self, send: Callable[[], object]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(send)

    def publish(self, uri: str, version: int | None, found: Sequence[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(uri, found, version)
        self._post(lambda: self.text_document_publish_diagnostics(params))

    def tell(self, text: str) -> None:
        params = types.ShowMessageParams(types.MessageType.Error, text)
        self._post(lambda: self.window_show_message(params))

    def log(self, text: str) -> None:
        params = types.LogMessageParams(types.MessageType.Error, text)
        self._post(lambda: self.window_log_message(params))

    def show_progress(self, title: str) -> Callable[[int, int], None]:
        window = self.client_capabilities.window
        if window is None or not window.work_done_progress:
            return lambda done, of: None
        token = f"ddpfix-{next(self._tokens)}"
        tell = self.work_done_progress

        async def begin() -> None:
            await tell.create_async(token)
            tell.begin(token, types.WorkDoneProgressBegin(title, percentage=0))

        began = asyncio.run_coroutine_threadsafe(begin(), self._loop)

        def report(done: int, of: int) -> None:
            if not began.done() or began.exception() is not None:
                if done < of:
                    return
                try:
                    began.result(timeout=5)
                except Exception:
                    return  # the editor shows none
            if done >= of:
                self._post(lambda: tell.end(token, types.WorkDoneProgressEnd()))
            else:
                state = types.WorkDoneProgressReport(message=f"{done} of {of} files", percentage=100 * done // of)
                self._post(lambda: tell.report(token, state))

        return report

    # What is open

    def document(self, uri: str) -> TextFile | None:
        """None for what is no file, and for a cell: its notebook is told apart."""
        path = to_fs_path(uri) if uri.startswith("file:") else None
        if path is None:
            return None
        found = self.workspace.get_text_document(uri)
        return TextFile(uri, Path(path), found.version or 0, found.source, self.workspace.position_codec)

    def notebook(self, uri: str) -> Notebook | None:
        path = to_fs_path(uri) if uri.startswith("file:") else None
        found = self.workspace.get_notebook_document(notebook_uri=uri)
        if path is None or found is None:
            return None
        cells = []
        for cell in found.cells:
            text = self.workspace.get_text_document(cell.document)
            cells.append(Cell(cell.document, cell.kind, text.version or 0, text.source))
        return Notebook(uri, Path(path), found.version, cells, self.workspace.position_codec)

    def owner(self, uri: str) -> str:
        """The URI under which the session knows what is shown at a URI: of a cell that of its notebook."""
        found = self.workspace.get_notebook_document(cell_uri=uri) if uri not in self.session.documents else None
        return found.uri if found else uri

    # Changes

    async def workspace_edit(self, data: dict[str, Any]) -> types.WorkspaceEdit | None:
        """What an action changes, worked out by the worker; None where it cannot be made, which is told."""
        document = self.session.documents.get(str(data.get("uri")))
        if document is None:
            return None
        made = await self._worked_out(document, data)
        if made is None:
            return None
        changed: list[tuple[str, int | None, list[types.TextEdit]]] = []
        for path, (before, after) in made.items():
            open_one = next((d for d in self.session.documents.values() if d.path.resolve() == path), None)
            if open_one is not None:
                changed += open_one.edits(after)
            else:
                texts = text_of(path.name, before), text_of(path.name, after)
                changed.append((uri_of(path), None, edits(*texts, self.workspace.position_codec)))
        return self._as_edit(changed)

    def _as_edit(self, changed: Sequence[tuple[str, int | None, list[types.TextEdit]]]) -> types.WorkspaceEdit:
        said = self.client_capabilities.workspace
        if said is None or said.workspace_edit is None or not said.workspace_edit.document_changes:
            return types.WorkspaceEdit(changes={uri: found for uri, _, found in changed})
        named = types.OptionalVersionedTextDocumentIdentifier
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(named(u, v), e) for u, v, e in changed])

    async def _worked_out(self, document: Document, data: dict[str, Any]) -> dict[Path, tuple[bytes, bytes]] | None:
        answer: asyncio.Future[dict[Path, tuple[bytes, bytes]] | str] = self._loop.create_future()

        def job() -> None:
            from codemods.rewriting.rewriter import RewriteError

            result: dict[Path, tuple[bytes, bytes]] | str = {}
            try:
                held, path = self.session.held(document)
                if held is not None:
                    held.write(path, document.data())
                    new = actions.changed(held, path, data, self.session.options)
                    result = {held.root / name: (held.now(name), after) for name, after in new.items()}
            except (RewriteError, actions.Gone, ValueError) as error:
                result = str(error)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            self._post(lambda: None if answer.done() else answer.set_result(result))

        self.session.worker.do(job)
        result = await answer
        if isinstance(result, str):
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"ddpfix: nothing changed: {result}"))
            return None
        return result

    def resolves_edits(self) -> bool:
        said = self.client_capabilities.text_document
        support = said.code_action.resolve_support if said and said.code_action else None
        return support is not None and "edit" in support.properties


def _holds(where: types.Range, position: types.Position) -> bool:
    at = (position.line, position.character)
    return (where.start.line, where.start.character) <= at <= (where.end.line, where.end.character)


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start.line <= other.end.line and other.start.line <= one.end.line


def server() -> Server:
    ls = Server()
    _texts(ls)
    _notebooks(ls)
    _answers(ls)
    _commands(ls)
    return ls


def _texts(ls: Server) -> None:
    @ls.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        ls.start(params)

    @ls.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        said = ls.client_capabilities.workspace
        watched = said.did_change_watched_files if said else None
        if watched is not None and watched.dynamic_registration:
            wanted = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(WATCHED)])
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            ls.client_register_capability(types.RegistrationParams([types.Registration("ddpfix-files", method, wanted)]))

    asked: list[bool] = []

    @ls.feature(types.SHUTDOWN)
    def shutdown(params: None) -> None:
        asked.append(True)
        ls.session.end()

    @ls.feature(types.EXIT)
    def exit_now(params: None) -> None:
        """The end of the process: pygls waits for the thread that reads stdin, which an editor need not close."""
        ls.session.end()
        os._exit(0 if asked else 1)

    @ls.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        if document := ls.document(params.text_document.uri):
            ls.session.open(params.text_document.uri, document)

    @ls.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        if document := ls.document(params.text_document.uri):
            ls.session.change(params.text_document.uri, document)

    @ls.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        ls.session.save(params.text_document.uri)

    @ls.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        ls.session.close(params.text_document.uri)

    @ls.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        ls.session.disk_changed()

    @ls.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        ls.session.configure(options(params.settings, ls.session.options.ask_for_reason))


def _notebooks(ls: Server) -> None:
    @ls.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        if notebook := ls.notebook(params.notebook_document.uri):
            ls.session.open(params.notebook_document.uri, notebook)

    @ls.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeNotebookDocumentParams) -> None:
        if notebook := ls.notebook(params.notebook_document.uri):
            ls.session.change(params.notebook_document.uri, notebook)

    @ls.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveNotebookDocumentParams) -> None:
        ls.session.save(params.notebook_document.uri)

    @ls.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseNotebookDocumentParams) -> None:
        ls.session.close(params.notebook_document.uri)


def _answers(ls: Server) -> None:
    def shown(uri: str) -> tuple[Shown, ...]:
        return ls.session.shown.get(uri, ())

    @ls.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        found = [s for s in shown(params.text_document.uri) if _holds(s.where, params.position)]
        if not found:
            return None
        text = "\n---\n\n".join(hover.text(s.finding) for s in found)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), found[0].where)

    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix, actions.FIX_ALL], resolve_provider=True)

    @ls.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def offered(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        owner = ls.owner(uri)
        document = ls.session.documents.get(owner)
        if document is None:
            return []
        here = [s.finding for s in shown(uri) if _meet(s.where, params.range)]
        every = [s.finding for u in document.uris for s in shown(u)]
        made = list(actions.offered(here, every, owner, ls.session.options, params.context.only))
        if not ls.resolves_edits():
            for action in made:
                await _fill(ls, action)
        return made

    @ls.feature(types.CODE_ACTION_RESOLVE)
    async def resolved(action: types.CodeAction) -> types.CodeAction:
        await _fill(ls, action)
        return action


async def _fill(ls: Server, action: types.CodeAction) -> None:
    if isinstance(action.data, dict):
        action.edit = await ls.workspace_edit(action.data)


def _commands(ls: Server) -> None:
    @ls.command(actions.EXPLAIN)
    async def explain(code: str) -> str:
        text, page = page_text(code), page_uri(code)
        window = ls.client_capabilities.window
        if page and window and window.show_document and window.show_document.support:
            await ls.window_show_document_async(types.ShowDocumentParams(page, take_focus=True))
        elif text:
            ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, text))
        return text

    @ls.command(actions.IGNORE)
    async def ignore(uri: str, identity: str, reason: str) -> None:
        edit = await ls.workspace_edit({"do": "ignore", "uri": ls.owner(uri), "id": identity, "reason": reason})
        if edit is not None:
            await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, "Ignore a finding of ddpfix"))


def serve() -> None:
    """Speak the protocol on stdin and stdout, until the editor ends it. What prints by itself goes to stderr."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    gc.disable()  # see `held.settle_memory`
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server().start_io(sys.stdin.buffer, out)
