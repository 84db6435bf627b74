"""A project's renames and plug-ins that are Bowler queries: the same rename in every file, whoever can read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.api.findings import Finding, Span
from codemods.engine.fix_source import safe, with_unsafe
from ddpfix import engine, plugins, project_renames
from ddpfix.bowler_rewrites import BowlerCodemod, CannotRead, new_text, only_bowler_reads
from ddpfix.discovery import discover
from ddpfix.project_renames import edits_for, renaming
from ddpfix.results import Fixed
from ddpfix.settings import Settings, SettingsError, parse
from ddpfix.summary import commit_message
from ddpfix.testing import check_told, check_transformed, project_of
from tests.gitrepos import make
from tests.programs import MODULE, ddpfix

DIST = b'import torch.distributed as dist\n\n__all__ = ["is_main"]\n\n\ndef is_main():\n    return dist.get_rank() == 0\n'
PLAIN = b"from utils.dist import is_main\n\nif is_main():\n    print('x')\n"
MATCH = b"from utils import dist\n\n\ndef f(x, /):\n    match x:\n        case 1:\n            return dist.is_main()\n"
WITH = b"from utils.dist import is_main\n\nwith (\n    open('a') as a,\n    open('b') as b,\n):\n    print(is_main())\n"
PEP695 = b"from utils.dist import is_main\n\n\ndef first[T](xs: list[T]) -> T:\n    return xs[is_main()]\n"
PYTHON2 = b"from utils.dist import is_main\nprint is_main()\n"
NEW = {"functions": {"is_main": "is_rank_zero"}}


def fixed(root: Path, **settings: object) -> Fixed:
    (tree,) = discover([root])
    chosen = Settings(**settings)  # type: ignore[arg-type]
    tree, codemods = plugins.with_codemods(tree, chosen)
    return engine.fix(tree, chosen, codemods, with_unsafe)


def evidence(findings: tuple[Finding, ...], path: str) -> str:
    return " ".join(e.text for f in findings if f.path == path for e in f.evidence)


def test_the_same_rename_in_files_that_bowler_reads_and_in_those_it_does_not(tmp_path: Path) -> None:
    files = {"utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": PLAIN, "b.py": MATCH, "c.py": WITH}
    made = fixed(make(tmp_path, files), rewrites=NEW)
    assert made.after["utils/dist.py"] == DIST.replace(b"is_main", b"is_rank_zero")
    assert made.after["a.py"] == PLAIN.replace(b"is_main", b"is_rank_zero")
    assert made.after["b.py"] == MATCH.replace(b"is_main", b"is_rank_zero")
    assert made.after["c.py"] == WITH.replace(b"is_main", b"is_rank_zero")
    for path in ("b.py", "c.py"):
        assert "renamed through LibCST" in evidence(made.fixed, path)
    assert evidence(made.fixed, "a.py") == ""
    assert not made.left


def test_syntax_of_a_newer_python_is_renamed_as_far_as_this_one_reads_it(tmp_path: Path) -> None:
    made = fixed(make(tmp_path, {"utils/dist.py": DIST, "a.py": PEP695}), rewrites=NEW)
    if sys.version_info >= (3, 12):
        assert made.after["a.py"] == PEP695.replace(b"is_main", b"is_rank_zero")
    else:
        assert [f.path for f in made.report.failed] == ["a.py"]
        assert "3.12" in made.report.failed[0].error


def test_a_name_in_an_f_string_is_renamed_too(tmp_path: Path) -> None:
    source = "from utils.dist import is_main\nprint(f'{is_main()} é {is_main()!r}', f'''\n{is_main()}''')\n".encode()
    made = fixed(make(tmp_path, {"utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": source}), rewrites=NEW)
    assert made.after["a.py"] == source.replace(b"is_main", b"is_rank_zero")
    assert "an f-string is one word to it" in evidence(made.fixed, "a.py")


def test_a_file_of_python_2_is_told_as_such(tmp_path: Path) -> None:
    made = fixed(make(tmp_path, {"utils/dist.py": DIST, "old.py": PYTHON2}), rewrites=NEW)
    assert "old.py" not in made.after
    ((path, why),) = [(f.path, f.error) for f in made.report.failed]
    assert path == "old.py"
    assert "Python 2. Only Bowler's grammar reads it: the project's renames in it are yours to make" in why
    assert only_bowler_reads(PYTHON2)
    assert not only_bowler_reads(b"x = = 1\n")


def test_each_finding_says_what_is_renamed_on_the_last_line_too(tmp_path: Path) -> None:
    two = {"functions": {"is_main": "is_rank_zero", "other": "another"}}
    source = b"from utils.dist import is_main\nother = 1\nis_main()"
    made = fixed(make(tmp_path, {"utils/dist.py": DIST, "a.py": source}), rewrites=two)
    assert {f.message for f in made.fixed} == {"`is_main` is called `is_rank_zero` in this project"}


def test_the_commit_of_a_rename_says_what_is_renamed(tmp_path: Path) -> None:
    made = fixed(make(tmp_path, {"utils/dist.py": DIST, "a.py": PLAIN, "b.py": MATCH}), rewrites=NEW)
    text = commit_message(plugins.lookup("PRJ001"), made.fixed)
    assert text.startswith("Rename is_main to is_rank_zero (PRJ001)\n\nFunctions that have a new name in this project.\n")
    assert "- `is_main` is `is_rank_zero` now\n" in text
    assert "cannot read this file (line 4, at '/'): renamed through LibCST" in evidence(made.fixed, "b.py")


def renaming_finding(path: str, old: str, new: str) -> Finding:
    return Finding("PRJ002", "project-rename", path, Span(1, 0, 1, 1), "", "…", renames=((old, new),))


@pytest.mark.parametrize(
    ("pairs", "subject"),
    [
        ([("a", "b"), ("c", "d"), ("a", "b")], "Rename a to b and c to d"),
        ([("an_old_name", "new_name"), ("another_old_name", "another_name")], "Rename an_old_name to new_name and 1 more method"),
        ([("x" * 40, "y" * 40)], "Rename methods as the project asks"),
        ([], "Rename methods as the project asks"),
    ],
)  # fmt: skip
def test_the_subject_stays_short(pairs: list[tuple[str, str]], subject: str) -> None:
    found = [renaming_finding("a.py", *pair) for pair in pairs]
    assert commit_message(plugins.lookup("PRJ002"), found).splitlines()[0] == f"{subject}{' in a.py' if pairs else ''} (PRJ002)"


def test_a_rename_is_unsafe_and_made_in_all_files_or_in_none(tmp_path: Path) -> None:
    root = make(tmp_path, {"utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": PLAIN})
    (tree,) = discover([root])
    settings = Settings(rewrites=NEW)
    codemods = plugins.chosen(settings, root).codemods
    assert not engine.fix(tree, settings, codemods, safe).after
    some = engine.fix(tree, settings, codemods, lambda f: f.path == "a.py")
    assert not some.after
    assert any("belongs together" in why for _, why in some.withdrawn)


def test_a_method_s_rename_says_which_calls_it_leaves(tmp_path: Path) -> None:
    source = b"class Meter:\n    def sync(self): ...\n\n\nmake(Meter).sync()\n"
    made = fixed(make(tmp_path, {"a.py": source}), rewrites={"methods": {"Meter.sync": "reduce"}})
    assert made.after["a.py"] == source.replace(b"def sync", b"def reduce")
    assert "keeps its name, is reported, and is yours to rename" in made.fixed[0].reason
    assert [(f.span.line, f.reason) for f in made.left] == [(5, "left as it is: whose `sync` this is, is not known")]


TEXTS = [
    b"from utils.dist import is_main\r\n\r\nif is_main():\r\n    pass\r\n",
    b"from utils.dist import is_main\n\x0c\nx = is_main()",
    b"\xef\xbb\xbffrom utils.dist import is_main\nx = is_main()\n",
    "# -*- coding: latin-1 -*-\nfrom utils.dist import is_main\nname = 'é'; x = is_main()\n".encode("latin-1"),
    b"from utils.dist import is_main\nif True:\n\tx = is_main()\n\ty = 1\n",
    b"from utils.dist import (is_main,\r\n    other)\nx = [is_main(), 'is_main']\r",
    b"from utils.dist import is_main\ntext = '''\nis_main()\n'''; x = is_main\n",
]


@pytest.mark.parametrize("data", TEXTS)
def test_every_byte_outside_the_name_stays(tmp_path: Path, data: bytes) -> None:
    made = fixed(make(tmp_path, {"utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": data}), rewrites=NEW)
    wanted = data.replace(b"is_main", b"is_rank_zero")
    for text in (b"'is_rank_zero'", b"'''\nis_rank_zero()"):
        wanted = wanted.replace(text, text.replace(b"is_rank_zero", b"is_main"))
    assert made.after["a.py"] == wanted


@pytest.mark.parametrize("data", [PLAIN, DIST, *TEXTS[:5]])
def test_bowler_and_libcst_make_the_same_text(data: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = make(tmp_path, {"utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": data})
    through_bowler = fixed(root, rewrites=NEW).after

    def unreadable(*_: object) -> str:
        raise CannotRead("as if")

    monkeypatch.setattr(project_renames, "new_text", unreadable)
    assert fixed(root, rewrites=NEW).after == through_bowler


def test_several_tables_at_once_and_beside_other_fixes(tmp_path: Path) -> None:
    source = b"import os\nfrom utils.dist import is_main\n\nos.makedirs(is_main(old=1))\n"
    tables = {"functions": {"is_main": "new"}, "keywords": {"old": "value"}, "modules": {"utils.dist": "utils.far"}}
    root = make(tmp_path, {"utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": source})
    made = fixed(root, rewrites=tables)
    assert made.after["a.py"].endswith(b"from utils.far import new\n\nos.makedirs(new(value=1))\n")


BAD = [
    ({"function": {}}, "did you mean 'functions'?"),
    ({"functions": {"a": "b.c"}}, "give the new name alone"),
    ({"functions": {"a b": "c"}}, "are names"),
    ({"functions": {"a": "class"}}, "cannot become 'class'"),
    ({"functions": ["a"]}, "a table of old names"),
    ("functions", "a table of tables"),
]


@pytest.mark.parametrize(("table", "said"), BAD)
def test_a_table_that_makes_no_sense_is_refused(table: object, said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("?", r"\?")):
        parse({"rewrites": table}, "ddpfix.toml")


class Query(BowlerCodemod):
    """`old()` is called `new()` here."""

    code = "TEAM001"
    name = "old-call"
    TRIGGERS = ((b"old",),)

    def query(self):  # type: ignore[no-untyped-def]
        from bowler import Query as Bowler

        return Bowler().select_function("old").rename("new")


class Spoiled(Query):
    """What this query makes is no Python."""

    code = "TEAM002"

    def query(self):  # type: ignore[no-untyped-def]
        return renaming([(span, "1 1") for span in [project_span()]])


def project_span() -> Span:
    module = project_of("old()\n").module("module.py")
    assert module is not None
    return module.span(module.calls_named("old")[0].func)


def test_a_query_as_a_plug_in() -> None:
    check_transformed(Query, "from a import old\n\n\ndef f():\n    return old(1)\n",
                      "from a import new\n\n\ndef f():\n    return new(1)\n", unsafe=True)  # fmt: skip


def test_a_query_on_what_its_grammar_cannot_read_is_told() -> None:
    check_told(Query, "def f(a, /):\n    old()\n", reason="Bowler's grammar cannot read this file")


def test_a_query_that_spoils_the_file_changes_nothing() -> None:
    check_told(Spoiled, "old()\n", reason="what the query makes of this file is no Python")


def test_an_edit_is_as_small_as_its_lines() -> None:
    module = project_of("a = old\nb = 1\nc = old\n").module("module.py")
    assert module is not None
    places = [(module.span(node), "new") for node in module.reads_of("old")]
    edits, said = edits_for(module, places)
    assert [(e.span.line, e.code) for e in edits] == [(1, "a = new\n"), (3, "c = new\n")]  # type: ignore[attr-defined]
    assert said == ()
    with pytest.raises(CannotRead):
        new_text(renaming(places), "match x:\n    case 1: pass\n", "module.py")


# What it costs those who do not use it, and what it may not touch


def test_a_check_without_renames_never_imports_bowler(tmp_path: Path) -> None:
    root = make(tmp_path, {"a.py": PLAIN})
    code = (
        "import sys; from pathlib import Path; from ddpfix import engine, settings; from ddpfix.discovery import discover\n"
        "(tree,) = discover([Path('.')]); engine.check(tree, settings.load(tree.root), use_cache=False)\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'bowler', 'fissix', 'libcst'}))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=root, capture_output=True, text=True, check=True, env=here())
    assert done.stdout == "[]\n"


def here() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def test_the_findings_are_the_same_without_bowler(tmp_path: Path) -> None:
    root = make(tmp_path, {"a.py": MODULE})
    code = "import sys; sys.modules['bowler'] = sys.modules['fissix'] = None; from ddpfix.cli import main; main()"
    command = [sys.executable, "-P", "-c", code, "check", "--no-cache", "."]
    without = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=here())
    ordinary = ddpfix(root, "check", "--no-cache", ".")
    assert "DDP101" in without.stdout
    assert (without.stdout.encode(), without.returncode) == (ordinary.stdout, ordinary.returncode)


def test_its_cache_is_ours_and_one_that_cannot_be_written_breaks_nothing(tmp_path: Path) -> None:
    config = b'[tool.ddpfix.rewrites]\nfunctions = { is_main = "new" }\n'
    root = make(tmp_path, {"pyproject.toml": config, "utils/__init__.py": b"", "utils/dist.py": DIST, "a.py": PLAIN})
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "diff", "--unsafe-fixes", "."]
    good = {**here(), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "DDPFIX_CACHE_DIR": str(tmp_path / "ours")}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=good)
    assert "+if new():" in done.stdout
    assert list((tmp_path / "ours" / "bowler").rglob("*.pickle"))
    assert not list(home.rglob("*issix*"))
    (tmp_path / "file").touch()
    bad = {**good, "DDPFIX_CACHE_DIR": str(tmp_path / "file" / "below")}
    again = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env=bad)
    assert again.stdout == done.stdout
    assert again.returncode == 1
