"""The options of `check` that CI, editors and pre-commit use: several formats, stdin, settings files, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ddpfix.outputs import formats
from tests.ci.conftest import BASE, DERIVED, FORMATS, run
from tests.gitrepos import make, put
from tests.programs import MODULE, PLAIN


def text(data: bytes) -> str:
    return data.decode()


def test_a_format_is_a_module_found_by_its_name(tmp_path: Path) -> None:
    assert set(formats.names()) == set(FORMATS)
    repo = make(tmp_path, {"model.py": MODULE})
    done = run(repo, "check", "--output-format", "answer", ".")  # a module of the same folder that is no format
    assert done.returncode == 2
    assert "no output format is called 'answer': there are concise, full, github, gitlab," in text(done.stderr)


def test_several_formats_at_once_are_what_each_is_alone(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    words = [w for f in FORMATS for w in ("-o", f"{f}={tmp_path / 'out' / f}")]
    done = run(repo, "check", *words, ".")
    assert text(done.stdout).startswith("model.py:15:9: DDP101 [fix]") and done.returncode == 1
    for name in set(FORMATS) - {"json", "junit"}:  # those two say how long it took
        assert (tmp_path / "out" / name).read_bytes() == run(repo, "check", "--output-format", name, ".").stdout, name
    alone = json.loads(run(repo, "check", "--output-format", "json", ".").stdout)
    assert {**json.loads((tmp_path / "out/json").read_bytes()), "elapsed": 0} == {**alone, "elapsed": 0}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-o", "sarif"], "--output takes FORMAT=FILE, not 'sarif'"),
        (["-o", "xml=x"], "no output format is called 'xml'"),
        (["-o", "sarif=model.py/x"], "model.py/x cannot be written"),
        (["--config", "none.toml"], "none.toml is no file"),
        (["--config", "model.py", "--isolated"], "--config and --isolated exclude each other"),
        (["--write-baseline"], "--write-baseline needs a file to write"),
        (["-"], "`-` needs the name of the file it stands for"),
        (["--stdin-filename", "model.py", "."], "--stdin-filename and paths exclude each other"),
        (["--stdin-filename", "none/model.py", "-"], "none does not exist"),
    ],
)
def test_an_error_is_one_line_and_exit_2(tmp_path: Path, words: list[str], says: str) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = run(repo, "check", *words)
    assert done.returncode == 2
    last = text(done.stderr).splitlines()[-1]
    assert last.startswith("ddpfix: ") and says in last


def test_exit_zero(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = run(repo, "check", "--exit-zero", ".")
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 2)
    assert run(repo, "check", "--exit-zero", "--select", "nothing", ".").returncode == 2


def test_stdin_stands_for_a_file_of_the_project(tmp_path: Path) -> None:
    repo = make(tmp_path, {"pkg/__init__.py": b"", "pkg/base.py": BASE, "pkg/model.py": PLAIN})
    done = run(repo, "check", "--output-format", "rdjson", "--stdin-filename", "pkg/model.py", "-", stdin=DERIVED)
    rows = json.loads(done.stdout)["diagnostics"]
    places = [(d["location"]["path"], d["location"]["range"]["start"]["line"]) for d in rows]
    assert places == [("pkg/model.py", 15), ("pkg/model.py", 16)]
    assert rows[0]["suggestions"][0]["text"].endswith("sync_dist=True)")
    unsaved = run(repo / "pkg", "check", "--output-format", "concise", "--stdin-filename", "new.py", stdin=DERIVED)
    assert text(unsaved.stdout).startswith("new.py:15:9: DDP101")
    assert (repo / "pkg/model.py").read_bytes() == PLAIN and not (repo / "pkg/new.py").exists()


def test_force_exclude_leaves_out_what_is_named(tmp_path: Path) -> None:
    files = {"early/a.py": MODULE, "vendor/b.py": MODULE, "built/c.py": MODULE, ".gitignore": b"built/\n", "d.py": MODULE}
    repo = make(tmp_path, {**files, "ddpfix.toml": b'exclude = ["early/*"]\n'})
    named = ["early/a.py", "vendor/b.py", "built/c.py", "d.py"]

    def seen(*words: str) -> set[str]:
        done = run(repo, "check", "--output-format", "concise", *words, *named)
        return {line.split(":")[0] for line in text(done.stdout).splitlines()}

    assert seen() == set(named)
    assert seen("--force-exclude") == {"d.py"}
    assert b"early/a.py" not in run(repo, "diff", "--force-exclude", *named).stdout


def test_settings_come_from_the_file_that_is_named_or_from_none(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE, "ddpfix.toml": b'select = ["DDP103"]\n'})
    put(tmp_path, {"other.toml": b'ignore = ["DDP103"]\n', "pyproject.toml": b'[tool.ddpfix]\nselect = ["flags"]\n'})

    def codes(*words: str) -> list[str]:
        done = run(repo, "check", "--output-format", "concise", *words, ".")
        return [line.split()[1] for line in text(done.stdout).splitlines()]

    assert codes() == ["DDP103"]
    assert codes("--config", "../other.toml") == ["DDP101"]
    assert codes("--config", "../pyproject.toml") == []
    assert codes("--isolated") == ["DDP101", "DDP103"]
    assert run(repo, "diff", "--isolated", ".").stdout.count(b"\n+ ") == 2


def test_show_settings_is_a_settings_file_of_its_own(tmp_path: Path) -> None:
    own = b'ignore = ["DDP203"]\nexclude = ["a \\"b\\"/*"]\nper-file-ignores = { "x/*" = ["DDP1"] }\nfail-on = "safe"\n'
    repo = make(tmp_path, {"model.py": MODULE, "ddpfix.toml": own})
    shown = run(repo, "check", "--show-settings", "--select", "metrics", ".")
    assert shown.returncode == 0
    assert f"# settings: {repo}/ddpfix.toml\n# files: 1\n# codemods: DDP101 DDP102 DDP103" in text(shown.stdout)
    (tmp_path / "again.toml").write_bytes(shown.stdout)
    again = run(repo, "check", "--show-settings", "--config", str(tmp_path / "again.toml"), ".")
    assert again.stdout.splitlines()[3:] == shown.stdout.splitlines()[3:]


def test_an_empty_result_is_an_answer_in_every_format(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": PLAIN})
    assert json.loads(run(repo, "check", "--output-format", "gitlab", ".").stdout) == []
    assert json.loads(run(repo, "check", "--output-format", "rdjson", ".").stdout)["diagnostics"] == []
    assert run(repo, "check", "--output-format", "github", ".").stdout == b""


def test_two_projects_are_two_runs_with_paths_from_where_one_stands(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path, {"src/model.py": MODULE}, name=name)
    found = json.loads(run(tmp_path, "check", "--output-format", "sarif", "one", "two").stdout)["runs"]
    assert [r["automationDetails"]["id"] for r in found] == ["ddpfix/one/", "ddpfix/two/"]
    places = [[x["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for x in r["results"]] for r in found]
    assert places == [["one/src/model.py"] * 2, ["two/src/model.py"] * 2]
    alone = json.loads(run(tmp_path / "one/src", "check", "--output-format", "sarif", ".").stdout)["runs"][0]["results"][0]
    assert alone["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/model.py"  # from the repository's root
