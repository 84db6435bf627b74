from __future__ import annotations

import os
from pathlib import Path

import pytest

from codemods.engine.fix_source import safe
from ddpfix import catalog, discovery, engine
from ddpfix.settings import Settings, SettingsError, load, parse

ALL = """\
select = ["DDP1"]
ignore = ["DDP103"]
extend-select = ["tuning"]
unsafe-fixes = true
exclude = ["tests"]
fail-on = "safe"
branch = "fix/ddp"
format-command = "ruff format"
[per-file-ignores]
"tests/*" = ["DDP1", "unguarded-print"]
"""


def error(text: str) -> str:
    import tomllib

    with pytest.raises(SettingsError) as caught:
        parse(tomllib.loads(text), "ddpfix.toml")
    return str(caught.value)


def test_every_key(tmp_path: Path) -> None:
    (tmp_path / "ddpfix.toml").write_text(ALL)
    wanted = Settings(
        select=("DDP1",),
        ignore=("DDP103",),
        extend_select=("tuning",),
        unsafe_fixes=True,
        exclude=("tests",),
        per_file_ignores={"tests/*": ("DDP1", "unguarded-print")},
        fail_on="safe",
        branch="fix/ddp",
        format_command="ruff format",
    )
    assert load(tmp_path) == wanted
    (tmp_path / "ddpfix.toml").unlink()
    table = ALL.replace("[per-file-ignores]", "[tool.ddpfix.per-file-ignores]")
    (tmp_path / "pyproject.toml").write_text("[tool.ddpfix]\n" + table)
    assert load(tmp_path) == wanted


def test_underscores_will_do() -> None:
    assert parse({"extend_select": ["DDP1"]}, "x").extend_select == ("DDP1",)


def test_no_file_no_table(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(tmp_path) == Settings()


def test_the_own_file_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ddpfix]\nbranch = 'a'\n")
    (tmp_path / "ddpfix.toml").write_text("branch = 'b'\n")
    assert load(tmp_path).branch == "b"
    (tmp_path / "ddpfix.toml").write_text("")
    assert load(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("selct = []", "unknown key 'selct'; did you mean 'select'?"),
        ("ignores = []", "unknown key 'ignores'; did you mean 'ignore'?"),
        ("unsafe_fix = true", "did you mean 'unsafe-fixes'?"),
        ("per-file-ignore = {}", "did you mean 'per-file-ignores'?"),
        ("zzz = 1", "unknown key 'zzz'; the keys are select, ignore,"),
        ("select = 'DDP1'", "select is a list of texts"),
        ("select = [1]", "select is a list of texts"),
        ("exclude = {a = 1}", "exclude is a list of texts"),
        ("unsafe-fixes = 'yes'", "unsafe-fixes is true or false"),
        ("unsafe-fixes = 1", "unsafe-fixes is true or false"),
        ("fail-on = 'never'", "fail-on is one of display, unsafe, safe"),
        ("branch = 1", "branch is a text"),
        ("per-file-ignores = ['a']", "per-file-ignores is a table of path patterns"),
        ("per-file-ignores = {a = 'DDP1'}", "per-file-ignores is a table of path patterns"),
        ("per-file-ignores = {a = [1]}", "per-file-ignores is a table of path patterns"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(text: str, told: str) -> None:
    assert error(text).startswith("ddpfix.toml: ")
    assert told in error(text)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    (tmp_path / "ddpfix.toml").write_text("select = [\n")
    with pytest.raises(SettingsError, match=r"ddpfix\.toml"):
        load(tmp_path)
    (tmp_path / "ddpfix.toml").write_bytes(b"branch = '\xff'\n")
    with pytest.raises(SettingsError, match=r"ddpfix\.toml"):
        load(tmp_path)


def test_somebody_else_s_broken_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# ddpfix\n[tool.other\n\xff")
    assert load(tmp_path) == Settings()
    (tmp_path / "pyproject.toml").write_text("tool = 3\n")
    assert load(tmp_path) == Settings()


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nddpfix = 3\n")
    with pytest.raises(SettingsError, match=r"tool\.ddpfix is a table"):
        load(tmp_path)


def test_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "ddpfix.toml").write_bytes(b"\xef\xbb\xbfbranch = 'b'\n")
    assert load(tmp_path).branch == "b"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "ddpfix.toml").write_text("")
    (tmp_path / "ddpfix.toml").chmod(0)
    with pytest.raises(SettingsError, match="Permission denied"):
        load(tmp_path)


def test_the_digest_tells_settings_apart() -> None:
    assert Settings().digest() != Settings(fail_on="safe").digest()
    assert Settings().digest() == Settings().digest()


def test_an_upgrade_that_is_asked_for(tmp_path: Path) -> None:
    old = "from pytorch_lightning.profiler import SimpleProfiler\n"
    (tmp_path / "requirements.txt").write_text("pytorch-lightning==1.9.5\n")
    (tmp_path / "train.py").write_text(old)
    (tmp_path / "ddpfix.toml").write_text("")
    (silent,) = discovery.discover([tmp_path])
    codemods = [catalog.lookup("DDP803")]
    assert not engine.check(silent, load(tmp_path), codemods, use_cache=False).findings
    (tmp_path / "ddpfix.toml").write_text('target-lightning = "2"\n')
    chosen = load(tmp_path)
    (finding,) = engine.check(silent, chosen, codemods, use_cache=False).findings
    assert [e.text for e in finding.evidence if e.kind != "safe"] == ['target-lightning = "2"']
    fixed = engine.fix(silent, chosen, codemods, safe)
    assert fixed.after["train.py"] == old.replace("profiler ", "profilers ").encode()
    (tmp_path / "ddpfix.toml").write_text('target-lightning = "1.9"\n')
    assert not engine.check(silent, load(tmp_path), codemods, use_cache=False).findings


@pytest.mark.parametrize("value", ['"two"', "2", '">=2"'])
def test_a_target_that_is_no_version(tmp_path: Path, value: str) -> None:
    (tmp_path / "ddpfix.toml").write_text(f"target-lightning = {value}\n")
    with pytest.raises(SettingsError, match="target-lightning is a"):
        load(tmp_path)
