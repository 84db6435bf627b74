"""ddpfix as programs call it: what they get is what the command line says, nothing is printed, and only `apply` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ddpfix
from ddpfix import catalog, discovery, repository_state, settings
from tests.gitrepos import blob, make, own_settings, sh
from tests.programs import FIXED, MODULE, PLAIN
from tests.programs import ddpfix as command

TRAIN = "import lightning.pytorch as pl\nfrom model import Model\n\npl.Trainer(devices=2, strategy='ddp').fit(Model())\n"


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("DDPFIX_CACHE_DIR", str(tmp_path / "cache"))


def repository(folder: Path) -> Path:
    return make(folder, {"model.py": MODULE, "train.py": TRAIN.encode(), "plain.py": PLAIN})


def test_check_gives_what_the_command_line_says_and_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path)
    (report,) = ddpfix.check(root)
    assert capfd.readouterr() == ("", "")
    said = json.loads(command(root, "check", ".", "--output-format", "json").stdout)["findings"]
    assert [(f["code"], f["path"], f["line"], f["applicability"], f["message"]) for f in said] == [
        (f.code, f.path, f.span.line, f.applicability.value, f.message) for f in report.findings
    ]
    assert [f.code for f in report.findings] == ["DDP101", "DDP103"]
    assert (report.root, report.scanned, report.unread) == (root, 3, ())


def test_check_takes_a_text_a_path_or_several_with_the_options_of_the_command(tmp_path: Path) -> None:
    root = repository(tmp_path)
    (root / "ddpfix.toml").write_text('ignore = ["DDP103"]\n')

    def codes(*where: object, **options: object) -> list[str]:
        return [f.code for r in ddpfix.check(*where, **options) for f in r.findings]  # type: ignore[arg-type]

    assert codes(str(root)) == codes([root / "model.py", root / "plain.py"]) == ["DDP101"]
    assert codes(root, isolated=True) == ["DDP101", "DDP103"]
    assert codes(root, isolated=True, select=["synced-metric-object"]) == ["DDP103"]
    assert codes(root, exclude=["model.py"]) == []


def test_check_looks_at_a_change_alone(tmp_path: Path) -> None:
    root = repository(tmp_path)
    with (root / "model.py").open("ab") as file:
        file.write(b"\n    def test_step(self, batch, i):\n        self.log('test/loss', self(batch), on_epoch=True)\n")
    (project,) = ddpfix.projects(root)
    assert [f.span.line for f in project.check(changed_since="HEAD").findings] == [19]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"select": ["nonsense"]}, catalog.UnknownSelector),
        ({"config": "none.toml"}, settings.SettingsError),
        ({"config": "pyproject.toml", "isolated": True}, ValueError),
        ({"sellect": ["DDP1"]}, TypeError),
    ],
)
def test_what_cannot_be_asked_is_an_error(tmp_path: Path, options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        ddpfix.check(repository(tmp_path), **options)  # type: ignore[arg-type]


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(discovery.NoSuchPath, match="gone does not exist"):
        ddpfix.check(tmp_path / "gone")


def test_fix_gives_a_source_its_fixes_without_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new = ddpfix.fix(MODULE.decode(), path="model.py", files={"train.py": TRAIN})
    assert new.source == FIXED.decode()
    assert [f.code for f in new.fixed] == ["DDP101", "DDP103"] and not new.left and not new.files
    assert ddpfix.fix(new.source, path="model.py", files={"train.py": TRAIN}).source == new.source
    assert not list(tmp_path.glob("*"))


def test_fix_keeps_to_what_is_selected_and_says_what_is_left() -> None:
    new = ddpfix.fix(MODULE.decode(), select=["DDP103"])
    assert new.source == MODULE.decode().replace("self.val_acc, sync_dist=True)", "self.val_acc)")
    assert [f.code for f in ddpfix.fix(MODULE.decode(), ignore=["DDP103"]).fixed] == ["DDP101"]


def test_fix_makes_an_unsafe_fix_only_where_that_is_asked_for() -> None:
    source = MODULE.decode().replace("validation_step", "training_step").replace("prog_bar=True", "on_epoch=True")
    source += '\n\nSTOPS = pl.callbacks.EarlyStopping(monitor="val/loss")\n'
    careful = ddpfix.fix(source, select=["DDP101"])
    assert (careful.source, [f.applicability.value for f in careful.left]) == (source, ["unsafe"])
    assert "on_epoch=True, sync_dist=True)" in ddpfix.fix(source, select=["DDP101"], unsafe_fixes=True).source


def test_fix_keeps_the_encoding_that_a_source_names_its_mark_and_its_line_ends() -> None:
    for head in ("# -*- coding: latin-1 -*-\n# é\n", "\ufeff# é\n"):
        for end in ("\n", "\r\n"):
            new = ddpfix.fix((head + MODULE.decode()).replace("\n", end), files={"train.py": TRAIN})
            assert new.source == (head + FIXED.decode()).replace("\n", end)


def test_fix_of_no_python_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"module\.py: line 2"):
        ddpfix.fix("import torch.distributed as dist\ndist.init_process_group(\n")


def test_apply_commits_on_a_branch_and_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path)
    done = ddpfix.apply(root, branch="mine", switch=False, select=["DDP101", "DDP103"])
    assert capfd.readouterr() == ("", "")
    assert done.committed is not None and done.committed.branch == "mine"
    assert [f.code for f in done.fixed.fixed] == ["DDP101", "DDP103"]
    assert blob(root, "mine:model.py") == FIXED
    assert (root / "model.py").read_bytes() == MODULE
    again = re.search(r"ddpfix apply[^`\n]*", sh(root, "show", "mine:DDPFIX_SUMMARY.md"))
    assert again is not None and again[0].startswith("ddpfix apply --select DDP101,DDP103 --branch mine")
    assert command(root, "undo").returncode == 0
    assert "mine" not in sh(root, "branch")


def test_apply_outside_git_asks_for_in_place(tmp_path: Path) -> None:
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / "model.py").write_bytes(MODULE)
    with pytest.raises(repository_state.NotInGit):
        ddpfix.apply(tmp_path / "loose")
    assert (tmp_path / "loose" / "model.py").read_bytes() == MODULE
    ddpfix.apply(tmp_path / "loose", in_place=True)
    assert (tmp_path / "loose" / "model.py").read_bytes() == FIXED


def test_the_page_names_what_there_is() -> None:
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    from importlib import import_module

    for dotted in re.findall(r"^\| `ddpfix\.([\w.]+)`", page, re.M):
        module, _, name = dotted.rpartition(".")
        assert issubclass(getattr(import_module(f"ddpfix.{module}"), name), Exception)
    assert {"check", "fix", "apply", "projects"} <= set(re.findall(r"^## (\w+)$", page, re.M))
    assert set(ddpfix.__all__) <= set(dir(ddpfix))


def test_a_name_that_is_not_there_is_an_error_as_ever() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ddpfix.nonsense  # noqa: B018
