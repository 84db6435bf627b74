"""`ddpfix trust`: the programs that a repository names run where their user has recorded so, and nowhere else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ddpfix import answers, settings, trust
from tests.gitrepos import make, own_settings, sh
from tests.programs import MODULE, ddpfix
from tests.review.terminals import OnTerminal, plain
from tests.test_plugins import FILES as PLUGGED
from tests.test_plugins import GLOO, text


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, tmp_path / "home")


def formatted(tmp_path: Path) -> Path:
    command = f"sh -c 'touch {tmp_path}/ran' --"
    return make(tmp_path, {"model.py": MODULE, "ddpfix.toml": f"format-command = {json.dumps(command)}\n".encode()})


def runs(tmp_path: Path, repo: Path) -> bool:
    """Whether an apply runs the format command; it is undone again."""
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 0, text(done)
    ran = (tmp_path / "ran").exists()
    assert ran == ("not run: format-command" not in text(done))
    (tmp_path / "ran").unlink(missing_ok=True)
    assert ddpfix(repo, "undo").returncode == 0
    return ran


def trusts(repo: Path) -> bool:
    """What the next command would let run, without starting it."""
    return trust.allowed(settings.load(repo), repo)[1]


def records(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ddpfix" / "trust"


def test_a_format_command_is_trusted_once_as_it_is_and_where_it_is(tmp_path: Path) -> None:
    repo = formatted(tmp_path)
    assert not runs(tmp_path, repo)
    assert ddpfix(repo, "trust", "--yes").returncode == 0
    assert runs(tmp_path, repo)
    assert sh(repo, "status", "--porcelain") == ""
    shutil.copytree(repo, tmp_path / "copy")
    assert not trusts(tmp_path / "copy")
    before = (repo / "ddpfix.toml").read_bytes()
    (repo / "ddpfix.toml").write_bytes(before.replace(b"touch", b"touch -c /dev/null;touch"))
    assert not trusts(repo)
    (repo / "ddpfix.toml").write_bytes(before)
    assert trusts(repo)
    assert "Nothing of this repository is trusted any more" in text(ddpfix(repo, "trust", "--forget"))
    assert not trusts(repo)


def test_a_record_that_is_not_the_users_own_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = formatted(tmp_path)
    assert ddpfix(repo, "trust", "--yes").returncode == 0
    (record,) = records(tmp_path).iterdir()
    record.chmod(0o666)
    assert not trusts(repo)
    record.chmod(0o600)
    records(tmp_path).chmod(0o777)
    assert not trusts(repo)
    records(tmp_path).chmod(0o700)
    assert trusts(repo)
    for data in (b"{", b"[]", b"[" * 100_000, b'{"root": 1}', b"\xff"):
        record.write_bytes(data)
        assert not trusts(repo)
    # the same record, brought along by the repository
    monkeypatch.setenv("XDG_CONFIG_HOME", str(repo / ".git"))
    said = ddpfix(repo, "trust", "--yes")
    assert said.returncode == 2 and "lies in the repository itself" in text(said)


def test_a_folder_of_settings_inside_the_repository_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = formatted(tmp_path)
    assert ddpfix(repo, "trust", "--yes").returncode == 0
    for inside in (repo / ".git", repo / "elsewhere"):
        if inside.name == "elsewhere":  # by a link that leads into it
            inside = tmp_path / "link"
            inside.symlink_to(repo / ".git")
        shutil.copytree(tmp_path / "home" / "ddpfix", inside / "ddpfix", dirs_exist_ok=True)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(inside))
        assert not trusts(repo)
    monkeypatch.setenv("XDG_CONFIG_HOME", ".git")  # a relative one counts for nothing
    assert not trusts(repo)


def test_nothing_is_recorded_without_a_word_for_it(tmp_path: Path) -> None:
    repo = formatted(tmp_path)
    done = ddpfix(repo, "trust")
    assert done.returncode == 2 and "nothing is recorded" in text(done)
    with OnTerminal(repo, "trust") as person:
        assert "format-command" in plain(person.until("[y/N] "))
        person.type("n\r")
        assert person.end()[0] == 2
    assert not records(tmp_path).exists()
    with OnTerminal(repo, "trust") as person:
        person.until("[y/N] ")
        person.type("y\r")
        assert person.end()[0] == 0
    assert trusts(repo)


def test_what_is_shown_drives_no_terminal(tmp_path: Path) -> None:
    repo = make(tmp_path, {"ddpfix.toml": b'format-command = "rm x\\u001b[2K\\rruff\\u202e\\nformat"\n'})
    shown = text(ddpfix(repo, "trust", "--yes"))
    assert "rm x\\x1b[2K\\rruff\\u202e\\nformat" in shown


def test_a_plug_in_is_trusted_by_its_contents(tmp_path: Path) -> None:
    repo = make(tmp_path, PLUGGED)
    cached = {"DDPFIX_CACHE_DIR": str(tmp_path / "cache")}

    def found() -> bool:
        said = text(ddpfix(repo, "check", ".", env=cached))
        assert ("gloo is slow" in said) != ("ddpfix trust" in said)
        return "gloo is slow" in said

    assert not found()
    assert "plug-in 'ci/no_gloo.py'" in text(ddpfix(repo, "trust", "--yes"))
    assert found()
    (repo / "ci/no_gloo.py").write_bytes(GLOO + b"\n# changed\n")
    assert not found()


def test_a_repository_that_names_nothing_has_nothing_to_trust(tmp_path: Path) -> None:
    done = ddpfix(make(tmp_path), "trust")
    assert done.returncode == 0 and "nothing to trust" in text(done)


def test_an_answer_from_before_is_not_given_again(tmp_path: Path) -> None:
    repo = formatted(tmp_path)
    asked = {answers._asked(["check"])}
    trust.keep(repo, trust.named(settings.load(repo), repo))
    asked.add(answers._asked(["check"]))
    trust.forget(repo)
    asked.add(answers._asked(["check"]))
    assert len(asked) == 3
