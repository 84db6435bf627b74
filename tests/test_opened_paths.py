"""Which part of a call of `open` is the path, and which the mode."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, check_told, project_of

HEAD = (
    "import zipfile\nimport fsspec\nimport fsspec as remote\nfrom smart_open import open as sopen\n"
    "from blobs import Store\nfrom places import LOG\n"
)


@pytest.mark.parametrize(
    ("call", "path", "act"),
    [
        ("Store.open(target, 'wb')", "target", Act.WRITES),
        ("Store.open(target, mode='wb')", "target", Act.WRITES),
        ("self.store.open(f'{folder}/rows.bin', 'ab')", "f'{folder}/rows.bin'", Act.WRITES),
        ("store.open('rows.txt', mode='r')", "'rows.txt'", Act.READS),
        ("fsspec.open(target, 'w')", "target", Act.WRITES),
        ("remote.open(target, 'w')", "target", Act.WRITES),
        ("sopen(target, 'w')", "target", Act.WRITES),
        ("target.open('w')", "target", Act.WRITES),
        ("target.open(mode='w')", "target", Act.WRITES),
        ("LOG.open('w', encoding='utf-8')", "LOG", Act.WRITES),
        ("(folder / 'rows.txt').open('a', 1)", "folder / 'rows.txt'", Act.WRITES),
        ("target.open()", "target", Act.READS),
        ("open(target, 'w')", "target", Act.WRITES),
    ],
)
def test_the_path_by_the_arguments(call: str, path: str, act: Act) -> None:
    found = _found(call)
    assert found is not None
    assert (ast.unparse(found.path), found.act) == (path, act)


@pytest.mark.parametrize("call", ["target.open(how)", "store.open(target, how)", "archive.open('extra.txt')", "sopen(port)"])
def test_nothing_shows_the_mode(call: str) -> None:
    assert _found(call) is None


@pytest.mark.parametrize(
    "made", ["archive = zipfile.ZipFile(target, 'w')\n    ", "with zipfile.ZipFile(target, 'w') as archive:\n        "]
)
def test_a_part_of_an_archive(made: str) -> None:
    project = project_of(f"{HEAD}\ndef save(target, rows):\n    {made}archive.open('rows.txt', 'w').write(rows)\n")
    module = project.module("module.py")
    assert module is not None
    (call,) = module.calls_named("open")
    assert file_call(module, call) is None


def _found(call: str) -> FileCall | None:
    project = project_of(f"{HEAD}\ndef save(self, store, target, folder, how, archive, port):\n    {call}\n")
    module = project.module("module.py")
    assert module is not None
    (node,) = [c for c in module.nodes(ast.Call) if ast.unparse(c.func).rpartition(".")[2] in ("open", "sopen")]
    return file_call(module, node)


def writer(name: str, opened: str) -> str:
    return (
        "import os\nimport pickle\nimport lightning.pytorch as pl\nfrom blobs import Store\n\n\n"
        "class Rows(pl.LightningModule):\n    def on_test_epoch_end(self):\n"
        f"        target = os.path.join(self.folder, {name})\n"
        f"        with {opened} as f:\n            pickle.dump(self.rows, f)\n"
        "        self.trainer.strategy.barrier()\n\n\n"
        "def main():\n    trainer = pl.Trainer(devices=2)\n    trainer.test(Rows())\n\n\nif __name__ == '__main__':\n    main()\n"
    )


@pytest.mark.parametrize("opened", ["Store.open(target, 'wb')", "Store.open(target, mode='wb')", "self.store.open(target, 'wb')"])
def test_a_file_of_each_rank_that_a_store_opens(opened: str) -> None:
    check_nothing(UnguardedFileIo, writer("f'rows_{self.global_rank}.bin'", opened))


def test_a_file_of_all_ranks_that_a_store_opens() -> None:
    check_told(UnguardedFileIo, writer("'rows.bin'", "Store.open(target, mode='wb')"), reason="put the test round the opening")
