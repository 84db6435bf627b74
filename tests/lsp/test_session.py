"""A whole session of an editor: each step is what its user would see. The server is a process, the client a real one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from lsprotocol import types

import ddpfix
from tests.lsp.editor import Editor, session

TRAIN = """\
import os

import torch.distributed as dist
from helpers import yaml_save


def save(cfg):
    yaml_save(cfg, "cfg.yaml")  # 😀
    os.makedirs("out")


def main():
    dist.init_process_group("nccl")
    print("begin")
    if dist.get_rank() == 0:
        dist.barrier()
    save({})
    print("end")


if __name__ == "__main__":
    main()
"""
HELPERS = """\
def yaml_save(data, path):
    with open(path, "w") as out:
        out.write(str(data))
"""
CODES = ("DDP202", "DDP202", "DDP203", "DDP204", "DDP301", "DDP304")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "train.py").write_text(TRAIN)
    (root / "helpers.py").write_text(HELPERS)
    (root / "run.sh").write_text("torchrun --nproc_per_node 4 train.py\n")
    return root


def checked(root: Path, path: str) -> list[tuple[str, str]]:
    """What `ddpfix check` says of a file as it is saved."""
    (report,) = ddpfix.check(root)
    return [(f.code, f.message) for f in report.findings if f.path == path]


def told(found: list[types.Diagnostic]) -> list[tuple[str, str]]:
    return [(str(d.code), d.message) for d in found]


def test_a_file_is_opened_read_typed_in_fixed_and_saved(repository: Path) -> None:
    async def work(editor: Editor) -> None:
        answer = await editor.begin(repository)
        assert answer.server_info is not None and answer.server_info.name == "ddpfix"
        train = repository / "train.py"
        uri = editor.open(train)
        found = await editor.codes(uri, *CODES)
        assert told(found) == checked(repository, "train.py")
        await editor.until(lambda: editor.progress_kinds[-1:] == ["end"])  # of the first look at the whole project
        assert editor.progress_kinds[0] == "begin"
        assert editor.registered == [types.WORKSPACE_DID_CHANGE_WATCHED_FILES]

        written, made, printed, barrier, *_ = found
        assert barrier.range == types.Range(types.Position(15, 8), types.Position(15, 22))
        assert [d.severity for d in (barrier, printed)] == [types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Warning]
        assert barrier.code_description is not None and barrier.code_description.href.endswith("DDP301.md")
        (cause, *_) = written.related_information or ()
        assert (cause.location.uri, cause.location.range.start.line) == (editor.uri(repository / "helpers.py"), 1)
        assert cause.message.startswith("via ") and cause.message.endswith("(helpers.py:2)")

        # hover
        at = types.HoverParams(types.TextDocumentIdentifier(uri), barrier.range.start)
        hover = await editor.text_document_hover_async(at)
        assert hover is not None and isinstance(hover.contents, types.MarkupContent)
        text = hover.contents.value
        assert "**DDP301" in text and "There is a safe fix" in text and "Evidence:" in text
        assert "rank 0 | other ranks" in text  # the lanes

        # unsaved text counts, in the file itself
        editor.type(uri, TRAIN.replace('    print("begin")\n', "").replace('    print("end")\n', ""))
        await editor.codes(uri, *(c for c in CODES if c != "DDP203"))
        editor.type(uri, TRAIN)
        (barrier,) = [d for d in await editor.codes(uri, *CODES) if d.code == "DDP301"]

        # one fix
        actions = await editor.actions(uri, barrier.range)
        title = next(t for t in actions if t.startswith("Fix DDP301"))
        assert actions[title].is_preferred
        await editor.chosen(actions[title])
        (alone,) = [line for line in editor.texts[uri].splitlines() if "barrier" in line]
        assert alone == "    dist.barrier()"
        await editor.codes(uri, *(c for c in CODES if c != "DDP301"))

        # all of a codemod: as `check --fix --select` does it
        editor.type(uri, TRAIN)
        (made,) = [d for d in await editor.codes(uri, *CODES) if d.code == "DDP204"]
        actions = await editor.actions(uri, types.Range(types.Position(7, 0), types.Position(7, 1)))
        await editor.chosen(actions["Fix all 2 DDP202 unguarded-file-io in this file"])
        files = {"helpers.py": HELPERS, "run.sh": "torchrun --nproc_per_node 4 train.py\n"}
        assert editor.texts[uri] == ddpfix.fix(TRAIN, path="train.py", files=files, select=["DDP202"]).source

        # the file: as `check --fix` does it, a file that is not open included
        editor.type(uri, TRAIN)
        await editor.codes(uri, *CODES)
        only = await editor.actions(uri, types.Range(types.Position(0, 0), types.Position(0, 0)), only=["source.fixAll"])
        (everything,) = only.values()
        assert (everything.title, everything.kind) == ("Fix all 6 safe findings of ddpfix in this file", "source.fixAll.ddpfix")
        await editor.chosen(everything)
        assert editor.texts[uri] == ddpfix.fix(TRAIN, path="train.py", files=files).source != TRAIN
        await editor.codes(uri)

        # ignored, with a reason
        editor.type(uri, TRAIN)
        (made,) = [d for d in await editor.codes(uri, *CODES) if d.code == "DDP204"]
        actions = await editor.actions(uri, made.range)
        await editor.chosen(next(a for t, a in actions.items() if t.startswith("Ignore DDP204")))
        assert "    # ddpfix: ignore[DDP204] say why\n    os.makedirs" in editor.texts[uri]
        await editor.codes(uri, *(c for c in CODES if c != "DDP204"))

        # explained
        await editor.chosen(next(a for t, a in actions.items() if t.startswith("Explain DDP204")))
        (page,) = editor.opened
        assert page == made.code_description.href if made.code_description else False

        # a file that cannot be read: said after a save, while one types the last findings stay
        before = editor.published
        editor.type(uri, TRAIN + "\ndef (")
        editor.save(uri, train)
        await editor.until(lambda: editor.shown[uri].diagnostics[0].message.startswith("not checked: line 24"))
        assert editor.published > before

        # a save of one file brings the others up to date
        editor.type(uri, TRAIN)
        await editor.codes(uri, *CODES)
        helpers = editor.open(repository / "helpers.py")
        editor.type(helpers, "def yaml_save(data, path):\n    return None\n")
        editor.save(helpers, repository / "helpers.py")
        editor.save(uri, train)
        found = await editor.codes(uri, "DDP203", "DDP203", "DDP204", "DDP301", "DDP304")
        assert told(found) == checked(repository, "train.py")

        # the project's settings, which another program writes
        (repository / "ddpfix.toml").write_text('ignore = ["DDP203"]\n')
        event = types.FileEvent(editor.uri(repository / "ddpfix.toml"), types.FileChangeType.Created)
        editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        await editor.codes(uri, "DDP204", "DDP301", "DDP304")
        # and those of the editor, which win
        editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({"ddpfix": {"select": ["DDP301"]}}))
        await editor.codes(uri, "DDP301")
        editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({"ddpfix": {"select": ["DDP9999"]}}))
        await editor.until(lambda: any("DDP9999" in m for m in editor.messages))

        editor.close(uri)
        await editor.until(lambda: not editor.shown[uri].diagnostics)
        assert await editor.end() == 0

    session(work)


NOTEBOOK = [
    (types.NotebookCellKind.Markup, "# Training"),
    (types.NotebookCellKind.Code, "%matplotlib inline\nfrom accelerate import Accelerator, notebook_launcher\n"),
    (
        types.NotebookCellKind.Code,
        "def train():\n    accelerator = Accelerator()\n    if accelerator.is_main_process:\n"
        "        accelerator.wait_for_everyone()\n",
    ),
    (types.NotebookCellKind.Code, "notebook_launcher(train, num_processes=2)"),
]


def test_a_notebook_and_an_editor_that_asks_for_reasons_and_takes_edits_at_once(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.begin(tmp_path, resolves=False, askForReason=True)
        notebook = editor.uri(tmp_path / "train.ipynb")
        uris = [f"{notebook}#cell{n}".replace("file:", "vscode-notebook-cell:") for n in range(len(NOTEBOOK))]
        for uri, (_, text) in zip(uris, NOTEBOOK, strict=True):
            editor.texts[uri], editor.versions[uri] = text, 1
        cells = [types.NotebookCell(kind, uri) for uri, (kind, _) in zip(uris, NOTEBOOK, strict=True)]
        texts = [types.TextDocumentItem(uri, "python", 1, text) for uri, (_, text) in zip(uris, NOTEBOOK, strict=True)]
        opened = types.NotebookDocument(notebook, "jupyter-notebook", 1, cells)
        editor.notebook_document_did_open(types.DidOpenNotebookDocumentParams(opened, texts))

        (found,) = await editor.codes(uris[2], "DDP301")
        assert found.range.start == types.Position(3, 8)
        actions = await editor.actions(uris[2], found.range)
        fix = next(a for t, a in actions.items() if t.startswith("Fix DDP301"))
        assert fix.edit is not None  # this editor cannot ask for it later
        ask = next(a for t, a in actions.items() if t.startswith("Ignore DDP301"))
        assert ask.command is not None and ask.command.command == "ddpfix.askForReason"
        made = types.ExecuteCommandParams("ddpfix.ignore", [*(ask.command.arguments or ()), "one process alone runs this"])
        await editor.workspace_execute_command_async(made)
        assert not editor.messages
        assert "# ddpfix: ignore[DDP301] one process alone runs this\n" in editor.texts[uris[2]]
        assert await editor.end() == 0

    session(work)
