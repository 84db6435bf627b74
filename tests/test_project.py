from __future__ import annotations

import pytest

from codemods.files.source import SourceModule
from codemods.store.import_targets import Resolved
from codemods.store.project import Project


def project(*paths: str, **sources: str) -> Project:
    return Project.of({**dict.fromkeys(paths, b""), **{p: s.encode() for p, s in sources.items()}})


@pytest.mark.parametrize(
    ("dotted", "importer", "path", "rest"),
    [
        ("pkg.a", "train.py", "pkg/a.py", ()),
        ("pkg.a.B", "train.py", "pkg/a.py", ("B",)),
        ("pkg.a.B.c", "train.py", "pkg/a.py", ("B", "c")),
        ("pkg", "train.py", "pkg/__init__.py", ()),
        ("pkg.B", "train.py", "pkg/__init__.py", ("B",)),
        (".a.B", "pkg/b.py", "pkg/a.py", ("B",)),
        (".", "pkg/b.py", "pkg/__init__.py", ()),
        (".B", "pkg/b.py", "pkg/__init__.py", ("B",)),
        ("..a", "pkg/sub/c.py", "pkg/a.py", ()),
        ("..sub.c", "pkg/sub/c.py", "pkg/sub/c.py", ()),
        (".c", "pkg/sub/__init__.py", "pkg/sub/c.py", ()),
        ("a", "pkg/b.py", "pkg/a.py", ()),  # a script beside it
        ("pkg.a", "pkg/sub/c.py", "pkg/a.py", ()),  # a folder above
        ("lib.x", "train.py", "src/lib/x.py", ()),  # src layout
        ("lib.x", "src/lib/y.py", "src/lib/x.py", ()),
        ("space.deep.m", "train.py", "space/deep/m.py", ()),  # no __init__.py
        (".m", "space/deep/n.py", "space/deep/m.py", ()),
        (".m.K", "space/deep/n.py", "space/deep/m.py", ("K",)),
    ],
)
def test_a_name_leads_to_its_file(dotted: str, importer: str, path: str, rest: tuple[str, ...]) -> None:
    files = project(
        "train.py", "pkg/__init__.py", "pkg/a.py", "pkg/b.py", "pkg/sub/__init__.py", "pkg/sub/c.py",
        "src/lib/__init__.py", "src/lib/x.py", "src/lib/y.py", "space/deep/m.py", "space/deep/n.py",
    )  # fmt: skip
    assert files.resolve(dotted, importer) == Resolved(path, rest)


@pytest.mark.parametrize(
    ("dotted", "importer"),
    [
        ("torch.nn", "train.py"),
        ("....x", "pkg/b.py"),
        ("..b", "b.py"),
        ("", "train.py"),
        ("space", "train.py"),
        (".gone", "space/m.py"),
    ],
)
def test_a_name_that_leads_out_of_the_project(dotted: str, importer: str) -> None:
    assert project("train.py", "b.py", "pkg/b.py", "space/m.py").resolve(dotted, importer) is None


def test_the_nearest_folder_wins() -> None:
    files = project("models.py", "exp/models.py", "exp/train.py")
    assert files.resolve("models.A", "exp/train.py") == Resolved("exp/models.py", ("A",))
    assert files.resolve("models.A", "train.py") == Resolved("models.py", ("A",))


def test_a_package_wins_over_the_module_of_its_name() -> None:
    files = project("a.py", "a/__init__.py", "a/b.py")
    assert files.resolve("a.b", "train.py") == Resolved("a/b.py", ())
    assert files.resolve("a.C", "train.py") == Resolved("a/__init__.py", ("C",))
    without_init = project("a.py", "a/b.py")
    assert without_init.resolve("a.C", "train.py") == Resolved("a.py", ("C",))
    assert without_init.resolve("a.b", "train.py") == Resolved("a/b.py", ())


def test_the_root_that_is_a_package_itself() -> None:
    files = project(
        **{"__init__.py": "", "nets/core.py": "from thepack.nets.base import Base\nimport numpy.linalg\n",
           "nets/base.py": "from other.nets import x\nfrom other import thing\nfrom nets.core import y\n",
           "train.py": "from thepack.nets.core import Core\nfrom plain import fit\nimport plain.tools\n"},
    )  # fmt: skip
    assert files.resolve("thepack.nets.core.Core", "train.py") == Resolved("nets/core.py", ("Core",))
    assert files.resolve("thepack.nets.base", "nets/core.py") == Resolved("nets/base.py", ())
    assert files.resolve("other.nets.x", "nets/base.py") is None  # `other.thing` is none of the root's
    assert files.resolve("plain.fit", "train.py") is None
    assert files.resolve("numpy.linalg", "nets/core.py") is None
    without = project(**{"nets/core.py": "", "train.py": "from thepack.nets.core import Core\n"})
    assert without.resolve("thepack.nets.core.Core", "train.py") is None


def test_unreadable_files_are_none_and_say_why() -> None:
    files = project(**{"bad.py": "def (", "good.py": "x = 1"})
    assert files.module("bad.py") is None
    assert "invalid syntax" in files.why_unreadable("bad.py")
    assert isinstance(files.module("good.py"), SourceModule)
    assert files.module("good.py") is files.module("good.py")
    assert files.module("gone.py") is None
    assert files.why_unreadable("gone.py") == ""


def test_a_listed_file_that_is_not_there() -> None:
    files = Project(["a.py"], lambda path: None)
    assert files.module("a.py") is None
    assert files.files_containing(b"x") == ()


def test_a_memo_is_built_once_and_may_be_none() -> None:
    files, seen = project("a.py"), []
    for _ in range(2):
        files.memo("key", lambda: seen.append(1))
    assert seen == [1]


def test_words_are_looked_for_once() -> None:
    reads: list[str] = []
    sources = {"a.py": b"one two", "b.py": b"two", "c.txt": b"one"}

    def read(path: str) -> bytes:
        reads.append(path)
        return sources[path]

    files = Project(sources, read)
    assert files.files_containing(b"one") == ("a.py",)
    assert files.files_containing(b"one") == ("a.py",)
    assert reads == ["a.py", "b.py"]
    assert files.files_containing(b"one", kinds=(".txt", ".py")) == ("a.py", "c.txt")
    assert files.python_files == ("a.py", "b.py")


def test_an_overlay_changes_what_it_names_only() -> None:
    before = project(**{"a.py": "x = 1", "b.py": "y = 1", "bad.py": "("})
    kept, old, bad = before.module("b.py"), before.module("a.py"), before.module("bad.py")
    before.memo("k", lambda: 1)
    after = before.with_overlay({"a.py": b"x = 2", "new.py": b"z = 1", "bad.py": b"w = 1"})
    assert after.module("b.py") is kept
    assert after.module("a.py") is not old and bad is None
    assert after.module("bad.py") is not None
    assert after.module("new.py") is not None and after.read("new.py") == b"z = 1"
    assert after.memo("k", lambda: 2) == 2
    assert before.read("a.py") == b"x = 1" and "new.py" not in before.files
    again = after.with_overlay({"a.py": b"x = 3"})
    assert (again.read("a.py"), again.read("new.py")) == (b"x = 3", b"z = 1")


def test_calls_and_imports_are_told_from_the_bytes() -> None:
    files = Project.of({
        "a.py": b"from pkg.load import (\n    one,\n)\none (1)\n",
        "b.py": b"def one(x):\n    return x\n",
        "c.py": b"class one(dict):\n    pass\nkey = 'load'\n",
        "d.py": b"import pkg.load as other\nother.one(2)\n",
        "e.py": b"from pkg import (other,\n    load)\n",
    })  # fmt: skip
    assert files.files_calling("one") == ("a.py", "d.py")
    assert files.files_importing("load") == ("a.py", "d.py", "e.py")
    changed = files.with_overlay({"b.py": b"one(3)\nfrom x import load\n", "d.py": b""})
    assert changed.files_calling("one") == ("a.py", "b.py")
    assert changed.files_importing("load") == ("a.py", "b.py", "e.py")
    assert changed.read("d.py") == b"" and files.read("b.py") == b"def one(x):\n    return x\n"


def test_other_names_of_an_import() -> None:
    files = Project.of({"a.py": b"from x import Model as Base\nimport Model  as  Other\nModel as no\n", "b.py": b""})
    assert files.aliases_of("Model") == ("Base", "Other")
    assert files.with_overlay({"a.py": b"", "b.py": b"import Model as New\n"}).aliases_of("Model") == ("New",)
