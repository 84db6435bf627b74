"""An editor for the tests: a real client of pygls that starts the server as a process and speaks to it over stdio."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

ROOT = Path(__file__).parents[2]
PATIENCE = 30.0  # seconds; a loaded machine is slow
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Editor(LanguageClient):
    """texts: of the open files. shown: what the server last published, by URI."""

    def __init__(self) -> None:
        super().__init__("editor of the tests", "1")
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.shown: dict[str, types.PublishDiagnosticsParams] = {}
        self.published = 0
        self.messages: list[str] = []
        self.opened: list[str] = []
        self.registered: list[str] = []
        self.progress_kinds: list[str] = []
        self._news = asyncio.Event()
        self._listen()

    def _on(self, method: str) -> Callable[[F], F]:
        return cast("Callable[[F], F]", self.feature(method))

    def _listen(self) -> None:
        @self._on(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.shown[params.uri] = params
            self.published += 1
            self._news.set()

        @self._on(types.WINDOW_SHOW_MESSAGE)
        def message(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self._news.set()

        @self._on(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.messages.append(params.message)

        @self._on(types.WINDOW_SHOW_DOCUMENT)
        def show(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            self.opened.append(params.uri)
            return types.ShowDocumentResult(True)

        @self._on(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered += [r.method for r in params.registrations]

        @self._on(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create(params: types.WorkDoneProgressCreateParams) -> None:
            del params

        @self._on(types.PROGRESS)
        def progress(params: types.ProgressParams) -> None:
            value: Any = params.value
            self.progress_kinds.append(value["kind"])
            self._news.set()

        @self._on(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.apply(params.edit)
            return types.ApplyWorkspaceEditResult(True)

    async def begin(self, root: Path, *, resolves: bool = True, **said: Any) -> types.InitializeResult:
        """Start the server in a folder. said: its initialization options."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        await self.start_io(sys.executable, "-m", "ddpfix", "lsp", env=environment, cwd=str(root))
        properties = types.ClientCodeActionResolveOptions(["edit"]) if resolves else None
        able = types.ClientCapabilities(
            text_document=types.TextDocumentClientCapabilities(
                code_action=types.CodeActionClientCapabilities(resolve_support=properties)
            ),
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
            ),
            window=types.WindowClientCapabilities(
                work_done_progress=True, show_document=types.ShowDocumentClientCapabilities(support=True)
            ),
        )
        uri = self.uri(root)
        answer = await self.initialize_async(
            types.InitializeParams(
                able, root_uri=uri, workspace_folders=[types.WorkspaceFolder(uri, root.name)], initialization_options=said
            )
        )
        self.initialized(types.InitializedParams())
        return answer

    async def end(self) -> int:
        """The server's exit status."""
        await self.shutdown_async(None)
        self.exit(None)
        assert self._server is not None
        return await asyncio.wait_for(self._server.wait(), PATIENCE)

    # Files

    def uri(self, path: Path) -> str:
        return from_fs_path(str(path)) or ""

    def open(self, path: Path, text: str | None = None) -> str:
        uri = self.uri(path)
        self.texts[uri] = path.read_bytes().decode() if text is None else text
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, self.texts[uri])
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def type(self, uri: str, text: str) -> None:
        self.texts[uri] = text
        self.versions[uri] += 1
        named = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))

    def save(self, uri: str, path: Path) -> None:
        path.write_bytes(self.texts[uri].encode())
        self.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        self.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    # What is shown

    async def until(self, holds: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not holds():
                self._news.clear()
                await self._news.wait()

        try:
            await asyncio.wait_for(wait(), PATIENCE)
        except TimeoutError:
            shown = {uri: [(d.code, d.message) for d in p.diagnostics] for uri, p in self.shown.items()}
            raise AssertionError(f"it never came: {shown}, {self.messages}") from None

    async def codes(self, uri: str, *wanted: str) -> list[types.Diagnostic]:
        """The diagnostics, once they have just these codes and are of the text as it is."""
        await self.until(lambda: self._is_of_now(uri) and sorted(map(_code, self.shown[uri].diagnostics)) == sorted(wanted))
        return list(self.shown[uri].diagnostics)

    def _is_of_now(self, uri: str) -> bool:
        return uri in self.shown and self.shown[uri].version in (self.versions.get(uri), None)

    async def actions(self, uri: str, where: types.Range, only: list[str] | None = None) -> dict[str, types.CodeAction]:
        context = types.CodeActionContext([], only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, context)
        found = await self.text_document_code_action_async(params)
        # lsprotocol reads an action that holds a command as one: its command is then the object, as a text
        return {a.title: a if isinstance(a, types.CodeAction) else _action(a) for a in found or ()}

    async def chosen(self, action: types.CodeAction) -> None:
        """Do what the action says, as an editor does."""
        resolved = action if action.edit or not action.data else await self.code_action_resolve_async(action)
        if resolved.edit:
            self.apply(resolved.edit)
        if resolved.command:
            made = types.ExecuteCommandParams(resolved.command.command, resolved.command.arguments)
            await self.workspace_execute_command_async(made)

    def apply(self, edit: types.WorkspaceEdit) -> None:
        for change in edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            uri = change.text_document.uri
            assert change.text_document.version == self.versions[uri]
            self.type(uri, _edited(self.texts[uri], [e for e in change.edits if isinstance(e, types.TextEdit)]))


def _action(read: types.Command) -> types.CodeAction:
    inner = ast.literal_eval(read.command)
    return types.CodeAction(read.title, command=types.Command(inner["title"], inner["command"], arguments=inner["arguments"]))


def _code(diagnostic: types.Diagnostic) -> str:
    return str(diagnostic.code or "")


def _edited(text: str, edits: list[types.TextEdit]) -> str:
    """By the protocol's own words: positions are in units of UTF-16, all edits are of the text as it was."""
    lines = text.encode("utf-16-le").decode("utf-16-le").splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode("utf-16-le")))
    data = text.encode("utf-16-le")

    def at(position: types.Position) -> int:
        return min(starts[min(position.line, len(lines))] + 2 * position.character, len(data))

    for edit in sorted(edits, key=lambda e: at(e.range.start), reverse=True):
        data = data[: at(edit.range.start)] + edit.new_text.encode("utf-16-le") + data[at(edit.range.end) :]
    return data.decode("utf-16-le")


def session(work: Callable[[Editor], Awaitable[T]]) -> T:
    """Run what an editor does, and end its server."""

    async def run() -> T:
        editor = Editor()
        try:
            return await work(editor)
        finally:
            if editor._server is not None and editor._server.returncode is None:
                editor._server.kill()

    return asyncio.run(run())
