from __future__ import annotations

import os
from pathlib import Path

import pytest

from ddpfix import ignore_rules
from ddpfix.discovery import SUBMODULE, NoSuchPath, Tree, discover, find_root, git_files, walk_files
from tests.gitrepos import make, own_settings, put, sh


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def one(*paths: Path, exclude: tuple[str, ...] = ()) -> Tree:
    (tree,) = discover(paths, exclude)
    return tree


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    put(folder, files)
    return folder


# Which files


def test_tracked_and_new_files_and_none_that_git_ignores(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"", "pkg/b.py": b"", ".gitignore": b"out/\n*.tmp.py\n", "data.txt": b""})
    put(repo, {"new.py": b"", "out/c.py": b"", "x.tmp.py": b"", "pkg/d.py": b""})
    tree = one(repo)
    assert tree.chosen == ("a.py", "new.py", "pkg/b.py", "pkg/d.py")
    assert "data.txt" in tree.files and "out/c.py" not in tree.files
    assert tree.is_git and tree.root == repo.resolve()


def test_without_git_the_same_files_are_walked(tmp_path: Path) -> None:
    files = {"a.py": b"", "pkg/b.py": b"", ".gitignore": b"out/\n", "out/c.py": b"", "setup.py": b""}
    tree = one(laid_out(tmp_path / "plain", files))
    assert tree.chosen == ("a.py", "pkg/b.py", "setup.py")
    assert not tree.is_git


def test_where_git_is_missing_or_refuses_the_folder_is_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make(tmp_path, {"a.py": b"", ".gitignore": b"b.py\n"})
    put(repo, {"b.py": b""})
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert git_files(repo) is None
    assert one(repo).chosen == ("a.py",)
    monkeypatch.undo()
    (repo / ".git" / "HEAD").write_bytes(b"broken")
    assert one(repo).chosen == ("a.py",)


def test_virtual_environments_and_caches_are_never_entered(tmp_path: Path) -> None:
    files = {"a.py": b"", "venv/lib/x.py": b"", "env3/pyvenv.cfg": b"", "env3/lib/y.py": b"", "p/__pycache__/z.py": b"",
             "p/node_modules/m.py": b"", ".tox/t.py": b""}  # fmt: skip
    assert one(laid_out(tmp_path / "plain", files)).chosen == ("a.py",)


def test_vendored_code_is_read_and_not_reported_on(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"", "third_party/x/b.py": b"", "pkg/vendor/c.py": b"", "vendor.py": b""})
    tree = one(repo)
    assert tree.chosen == ("a.py", "vendor.py")
    assert "third_party/x/b.py" in tree.files
    assert one(repo / "third_party" / "x").chosen == ("third_party/x/b.py",)
    assert one(repo / "third_party" / "x" / "b.py").chosen == ("third_party/x/b.py",)
    assert one(repo / "pkg").chosen == ()
    assert one(repo, repo / "third_party").chosen == ("a.py", "third_party/x/b.py", "vendor.py")


@pytest.mark.parametrize("built", ["build/lib", "build/lib.linux-x86_64-cpython-310"])
@pytest.mark.parametrize(("home", "source"), [("", ""), ("ops/", ""), ("", "src/")])
def test_what_a_build_copied_is_not_read(tmp_path: Path, built: str, home: str, source: str) -> None:
    copied = dict.fromkeys((f"{home}{built}/pkg/net.py", f"{home}{built}/pkg/gone.py"), b"")
    files = {f"{home}{source}pkg/net.py": b"", **copied, "setup.py": b""}
    repo = make(tmp_path, files)
    assert set(one(repo).files) == {f"{home}{source}pkg/net.py", "setup.py"}
    assert one(repo / home / built).chosen == (f"{home}{built}/pkg/gone.py", f"{home}{built}/pkg/net.py")
    assert one(repo / home / built / "pkg/net.py").chosen == (f"{home}{built}/pkg/net.py",)


@pytest.mark.parametrize(
    "names",
    [
        ("build/lib/tools.py", "main.py"),  # a folder of that name is the project's own
        ("build/net.py", "net.py"),
        ("pkg/build/library/net.py", "pkg/net.py"),
        ("build/lib/pkg/net.py", "other/pkg/net.py"),
        ("build/lib/pkg/conf.yaml", "pkg/conf.yaml"),
    ],
)
def test_folders_that_only_look_like_a_build(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert set(one(make(tmp_path, dict.fromkeys(names, b""))).files) == set(names)


def test_excluded_patterns(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"", "tests/b.py": b"", "pkg/tests/c.py": b"", "pkg/d_test.py": b"", "tests2/e.py": b""})
    assert one(repo, exclude=("tests",)).chosen == ("a.py", "pkg/d_test.py", "pkg/tests/c.py", "tests2/e.py")
    assert one(repo, exclude=("*/tests", "*_test.py", "tests*")).chosen == ("a.py",)
    assert one(repo / "tests" / "b.py", exclude=("tests",)).chosen == ("tests/b.py",)


def test_parts_of_a_repository_see_all_of_it(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"", "pkg/b.py": b"", "pkg2/c.py": b"", "req.txt": b""})
    tree = one(repo / "pkg")
    assert tree.chosen == ("pkg/b.py",) and set(tree.files) == {"a.py", "pkg/b.py", "pkg2/c.py", "req.txt"}
    assert one(repo / "a.py", repo / "pkg").chosen == ("a.py", "pkg/b.py")
    assert one(repo / "req.txt").chosen == ()


def test_what_is_named_is_looked_at_even_where_git_ignores_it(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"", ".gitignore": b"out/\nb.py\n"})
    put(repo, {"out/x.py": b"", "out/deep/y.py": b"", "b.py": b""})
    assert one(repo / "out").chosen == ("out/deep/y.py", "out/x.py")
    assert one(repo / "b.py").chosen == ("b.py",)
    assert one(repo).chosen == ("a.py",)


def test_two_repositories_are_two_trees(tmp_path: Path) -> None:
    first, second = make(tmp_path, name="first"), make(tmp_path, name="second")
    trees = discover([first, second / "pkg", first / "a.py"])
    assert [(t.root.name, t.chosen) for t in trees] == [("first", ("README.md", "a.py", "pkg/b.py")), ("second", ("pkg/b.py",))]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPath, match="does not exist"):
        discover([tmp_path / "gone"])


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    plain = laid_out(tmp_path / "plain", {"a.py": b"", "pkg/b.py": b""})
    (plain / "again").symlink_to(plain / "pkg")
    (plain / "up").symlink_to(plain)
    (plain / "link.py").symlink_to(plain / "a.py")
    assert one(plain).chosen == ("a.py", "pkg/b.py")
    assert one(plain / "again").root == (plain / "pkg").resolve()


def test_submodules_are_left_alone_and_told(tmp_path: Path) -> None:
    inner = make(tmp_path, {"x.py": b""}, name="inner")
    outer = make(tmp_path, {"a.py": b""}, name="outer")
    sh(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "libs/sub")
    tree = one(outer)
    assert tree.chosen == ("a.py",)
    assert [(s.path, s.error) for s in tree.skipped] == [("libs/sub", SUBMODULE)]
    assert one(outer / "a.py").skipped == ()
    assert one(outer / "libs/sub").chosen == ("x.py",)


def test_a_repository_inside_another_is_its_own(tmp_path: Path) -> None:
    outer = make(tmp_path, {"a.py": b""}, name="outer")
    make(outer, {"x.py": b""}, name="inner")
    assert one(outer).files == ("a.py",)
    assert one(outer / "inner").chosen == ("x.py",)


def test_odd_names(tmp_path: Path) -> None:
    names = ["ü.py", "a b.py", "-x.py", "q'\".py", "back\\slash.py", "tab\t.py", "line\nend.py", "[x].py", "日本/本.py"]
    repo = make(tmp_path, dict.fromkeys(names, b""))
    raw = os.fsdecode(b"caf\xe9.py")
    (repo / raw).write_bytes(b"")
    assert one(repo).chosen == tuple(sorted([*names, raw]))
    for name in (*names, raw):
        assert one(repo / name).chosen == (name,)


def test_the_root_of_a_folder_without_git(tmp_path: Path) -> None:
    plain = laid_out(tmp_path / "plain", {"pyproject.toml": b"", "pkg/a.py": b"", "other/b.py": b""})
    assert find_root(plain / "pkg" / "a.py") == plain.resolve()
    bare = laid_out(tmp_path / "bare", {"x/a.py": b""})
    assert find_root(bare / "x") == (bare / "x").resolve()


def test_a_tracked_file_that_is_gone(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"", "b.py": b""})
    (repo / "b.py").unlink()
    assert one(repo).chosen == ("a.py", "b.py")  # the engine passes over it


# .gitignore, beside git itself

# without `[[:digit:]]`, `[z-a]` and a tab at the end of a line, which pathspec reads in its own way
PATTERNS = [
    "*.log", "/top.py", "build/", "docs/*.txt", "**/cache", "a/**", "a/**/z.py", "**/deep/x.py", "!keep.log", "x?y.py",
    "[abc].py", "[!abc]q.py", "[a-c]r.py", "\\#hash.py", "\\!bang.py", "# comment", "", "trail   ",
    "kept\\ ", "with space.py", "*a*b/*c*d", "foo/", "!foo/in.py", "[].py", "[]].py", "[^x]t.py",
    "un[closed", "back\\", "*", "!*/", "!*.py", "/*", "!/pkg", "pkg/*", "!pkg/a.py", "**", "a**b.py", "**/", "/**/m.py",
    "a/b", "/", "//", "ü.py", "d/**/", "?", "e.py ", ".*",
]  # fmt: skip
NAMES = [
    "x.log", "keep.log", "top.py", "sub/top.py", "build/a.py", "pkg/build/b.py", "build2.py", "docs/a.txt",
    "docs/s/b.txt", "cache/x.py", "p/cache", "a/x.py", "a/b/z.py", "a/z.py", "q/a/z.py", "deep/x.py", "p/deep/x.py",
    "xzy.py", "x/y.py", "a.py", "d.py", "dq.py", "aq.py", "br.py", "1s.py", "#hash.py", "!bang.py", "trail", "kept ",
    "with space.py", "1a2b/3c4d", "1a2b/x/3c4d", "foo/in.py", "p/foo", "].py", "xt.py", "yt.py", "unc", "back\\",
    "pkg/a.py", "pkg/b.py", "pkg/sub/c.py", "a12b.py", "m.py", "p/m.py", "p/q/m.py", "b.py\t", "b.py", "ü.py",
    "d/e/f.py", "e.py", "e.py ", ".hidden/x.py", ".dot.py", "z.py",
]  # fmt: skip


def beside_git(folder: Path, ignores: dict[str, str]) -> None:
    repo = folder / "repo"
    repo.mkdir()
    sh(repo, "init", "-q")
    put(repo, {name: b"" for name in NAMES if not any(n.startswith(name + "/") for n in NAMES)})
    put(repo, {name: text.encode() for name, text in ignores.items()})
    listed = git_files(repo)
    assert listed is not None
    assert sorted(walk_files(repo, "")) == sorted(listed), ignores


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_what_it_means_to_git(tmp_path: Path, pattern: str) -> None:
    beside_git(tmp_path, {".gitignore": pattern + "\n"})


@pytest.mark.parametrize("start", range(0, len(PATTERNS), 5))
def test_patterns_together_mean_what_they_mean_to_git(tmp_path: Path, start: int) -> None:
    some = [p for p in PATTERNS[start : start + 9] if p not in ("*", "**", "/*")]
    beside_git(tmp_path, {".gitignore": "\r\n".join(some), "pkg/.gitignore": "\ufeff!b.py\n*.py\n!a.py\n/sub\n"})


def test_a_pattern_that_can_never_fit_is_no_error(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": b"un[closed\n[z-a].py\nback\\\n"})
    rules = ignore_rules.rules_of(tmp_path, "")
    assert not ignore_rules.is_ignored("unc", False, rules) and not ignore_rules.is_ignored("back", False, rules)
    assert ignore_rules.rules_of(tmp_path / "sub", "sub") == ()
