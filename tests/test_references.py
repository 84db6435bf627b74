"""Which names mean the same thing, and where a word occurs in the repository."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.trainer.orphans import removal
from codemods.analysis.trainer.references import (
    binding_scope,
    bindings,
    functions_named,
    in_comments,
    in_other_files,
    in_strings,
    in_text_files,
    names_of,
)
from codemods.files.source import SourceModule
from codemods.store.project import Project


def parsed(text: str) -> SourceModule:
    return SourceModule("train.py", textwrap.dedent(text).encode())


def project(**files: str) -> Project:
    """Files by name; `__` stands for a slash and `_dot_` for the dot of a suffix."""
    named = {n.replace("__", "/").replace("_dot_", "."): textwrap.dedent(t).encode() for n, t in files.items()}
    return Project.of(named)


def lines_of(text: str, word: str) -> list[int]:
    """The lines where `word` means the module's name."""
    module = parsed(text)
    return sorted(n.lineno for n in names_of(module, word, module.tree))


def test_a_name_read_in_a_function_means_the_module_s() -> None:
    assert lines_of("x = 1\ndef f():\n    return x\n", "x") == [1, 3]


def test_a_parameter_hides_it() -> None:
    assert lines_of("x = 1\ndef f(x):\n    return x\n", "x") == [1]


def test_an_assignment_hides_it_in_the_whole_function() -> None:
    assert lines_of("x = 1\ndef f():\n    print(x)\n    x = 2\n", "x") == [1]


def test_a_global_statement_does_not() -> None:
    assert lines_of("x = 1\ndef f():\n    global x\n    x = 2\n", "x") == [1, 4]


def test_defaults_decorators_and_annotations_are_read_outside() -> None:
    assert lines_of("x = 1\n@x\ndef f(x: x = x) -> x:\n    return x\n", "x") == [1, 2, 3, 3, 3]


def test_the_default_of_a_lambda_is_read_outside() -> None:
    assert lines_of("x = 1\nf = lambda x=x: x\n", "x") == [1, 2]


def test_a_comprehension_hides_its_target_but_not_its_first_iterable() -> None:
    assert lines_of("x = [1]\ny = [x for x in x if x]\n", "x") == [1, 2]


def test_a_comprehension_variable_does_not_hide_the_name_beside_it() -> None:
    assert lines_of("x = 1\ndef f(rows):\n    return [x for x in rows], x\n", "x") == [1, 3]


def test_a_walrus_in_a_comprehension_binds_in_the_function() -> None:
    assert lines_of("x = 1\ndef f(rows):\n    return [r for r in rows if (x := r)], x\n", "x") == [1]


def test_methods_do_not_see_the_names_of_their_class() -> None:
    assert lines_of("x = 1\nclass A:\n    x = 2\n    def f(self):\n        return x\n", "x") == [1, 5]


def test_imports_exceptions_and_matches_bind() -> None:
    source = """
        def f(v):
            import x
            return x
        def g(v):
            try:
                v()
            except Exception as x:
                return x
        def h(v):
            match v:
                case [x, *_]:
                    return x
    """
    assert lines_of(source, "x") == []


def test_a_nested_function_is_found_in_its_own_scope() -> None:
    module = parsed("def f():\n    def g():\n        return 1\n    return g\n")
    name = next(n for n in module.nodes(ast.Name) if n.id == "g")
    assert binding_scope(module, name) is module.functions[0]


def test_bindings_lists_every_statement_that_gives_the_value() -> None:
    module = parsed("import x\nif a:\n    x = 1\nfor x in y:\n    pass\ndef x():\n    pass\n")
    assert sorted(b.lineno for b in bindings(module, "x", module.tree)) == [1, 3, 4, 6]  # type: ignore[attr-defined]


def test_functions_named_leaves_methods_out() -> None:
    module = parsed("def f():\n    def f():\n        pass\nclass A:\n    def f(self):\n        pass\n")
    assert [f.lineno for f in functions_named(module, "f")] == [1, 2]


# Other files

METRICS = "def score():\n    return 1\n"


@pytest.mark.parametrize(
    "user",
    [
        "from metrics import score\n",
        "from metrics import score as s\n",
        "from .metrics import score\n",
        "import metrics\nmetrics.score()\n",
        "import metrics as m\nm.score()\n",
        "from metrics import *\nscore()\n",
        "from unknown.package.metrics import score\n",
        "def f():\n    from metrics import score\n",
    ],
)
def test_another_file_refers_to_it(user: str) -> None:
    assert in_other_files(project(metrics_dot_py=METRICS, user_dot_py=user), "metrics.py", "score")


@pytest.mark.parametrize(
    "user",
    [
        "def score():\n    return 2\nscore()\n",
        "from other import score\n",
        "from sklearn.model_selection import score\n",
        "self.score()\n",
        "f(score=1)\n",
        "from metrics import *\n# score\n",
        "underscore = 1\n",
    ],
)
def test_another_file_means_something_else(user: str) -> None:
    files = project(metrics_dot_py=METRICS, other_dot_py=METRICS, user_dot_py=user)
    assert not in_other_files(files, "metrics.py", "score")


def test_a_package_that_exports_it_refers_to_it() -> None:
    files = Project.of({"pkg/__init__.py": b"from .metrics import score\n", "pkg/metrics.py": METRICS.encode()})
    assert in_other_files(files, "pkg/metrics.py", "score")


@pytest.mark.parametrize(
    "user",
    [
        "fit(score)\n",
        "def f():\n    return score(1)\n",
        "from os import *\nfit(score)\n",
        "class C:\n    s = [score for x in y]\n",
    ],
)
def test_a_file_that_lacks_the_import_may_mean_it(user: str) -> None:
    found = in_other_files(project(metrics_dot_py=METRICS, user_dot_py=user), "metrics.py", "score")
    assert [m.kind for m in found] == ["unbound"]


def test_a_name_of_python_is_bound_everywhere() -> None:
    files = project(metrics_dot_py="def print(x):\n    return x\n", user_dot_py="print(1)\n")
    assert not in_other_files(files, "metrics.py", "print")


def test_a_file_that_cannot_be_read_may_refer_to_it() -> None:
    files = project(metrics_dot_py=METRICS, old_dot_py="print score\n")
    assert [m.kind for m in in_other_files(files, "metrics.py", "score")] == ["unreadable"]


# Words


@pytest.mark.parametrize(
    "name", ["job.yaml", "run.sh", "README.md", "cfg.json", "notes.ipynb", "setup.cfg", "Makefile"]
)
def test_a_text_file_names_it(name: str) -> None:
    files = Project.of({"train.py": b"", name: b"first\nuse: score\n"})
    assert [str(m) for m in in_text_files(files, "score")] == [f"{name}:2"]


def test_parts_of_words_and_binary_files_do_not_count() -> None:
    assert not in_text_files(Project.of({"a.md": b"scores underscore score_2\n", "b.png": b" score "}), "score")


def test_behind_its_module_only() -> None:
    files = Project.of({"a.md": b"the metric\n", "b.yaml": b"_target_: train.metric\n"})
    assert [m.path for m in in_text_files(files, "metric", of="train")] == ["b.yaml"]


def test_a_notebook_that_names_the_module_counts() -> None:
    files = Project.of({"a.ipynb": b"from train import *; metric.compute()\n"})
    assert in_text_files(files, "metric", of="train")


def test_strings_and_comments() -> None:
    files = project(train_dot_py="x = {'score': 1}\n", b_dot_py='"""About score."""\n', c_dot_py="# score\n")
    assert [m.path for m in in_strings(files, "score")] == ["b.py", "train.py"]
    module = files.module("c.py")
    assert module is not None and in_comments(module, "score")


# Orphans


def orphans(text: str, first: str = "f", **files: str) -> tuple[list[str], list[str]]:
    """(what goes with the function `first`, why other things stay)."""
    held = project(train_dot_py=text, **files)
    module = held.module("train.py")
    assert module is not None
    plan = removal(held, [(module, functions_named(module, first)[0])])
    return sorted({*plan.names, *(e.name for e in plan.edits if hasattr(e, "name"))}), plan.left


def test_helpers_go_down_the_chain() -> None:
    assert orphans("def a():\n    return 1\n\ndef b():\n    return a()\n\ndef f():\n    return b()\n") == (
        ["a", "b"],
        [],
    )


def test_a_recursive_helper_goes() -> None:
    assert orphans("def a(n):\n    return n and a(n - 1)\n\ndef f():\n    return a(3)\n") == (["a"], [])


def test_helpers_that_call_each_other_stay_as_they_are() -> None:
    source = "def a(n):\n    return n and b(n)\n\ndef b(n):\n    return a(n)\n\ndef f():\n    return a(1) + b(1)\n"
    assert orphans(source) == ([], [])


def test_what_is_used_elsewhere_stays_without_a_word() -> None:
    assert orphans("import numpy as np\n\ndef f():\n    return np.x\n\ny = np.y\n") == ([], [])


def test_what_was_unused_before_stays_without_a_word() -> None:
    assert orphans("import json\nimport numpy as np\n\ndef f():\n    return np.x\n") == (["np"], [])


def test_an_import_with_unknown_effects_stays_and_is_named() -> None:
    goes, left = orphans("import unsloth\n\ndef f():\n    return unsloth.x\n")
    assert not goes and "other code relies on" in left[0]


def test_an_import_in_a_branch_stays_and_is_named() -> None:
    goes, left = orphans("try:\n    import numpy as np\nexcept ImportError:\n    raise\n\ndef f():\n    return np.x\n")
    assert not goes and "stands in a branch" in left[0]


def test_an_import_that_is_marked_for_the_linter_stays_and_is_named() -> None:
    goes, left = orphans("import numpy as np  # noqa: F401\n\ndef f():\n    return np.x\n")
    assert not goes and "marked as wanted" in left[0]


def test_a_project_module_that_does_things_at_import_stays() -> None:
    source = "from reg import helper\n\ndef f():\n    return helper()\n"
    goes, left = orphans(source, reg_dot_py="install()\ndef helper():\n    pass\n")
    assert not goes and "other code relies on" in left[0]


def test_an_import_named_in_a_string_annotation_stays() -> None:
    goes, left = orphans("import numpy as np\n\ndef f():\n    return np.x\n\ndef g(a: 'np.ndarray'):\n    return a\n")
    assert not goes and "annotation" in left[0]


def test_a_word_in_the_default_of_an_annotated_field_is_no_annotation() -> None:
    source = "import evaluate\n\ndef f():\n    return evaluate.x\n\nclass A:\n    b: int = field(help='evaluate it')\n"
    assert orphans(source) == (["evaluate"], [])


def test_a_value_made_by_an_unknown_call_stays_and_is_named() -> None:
    goes, left = orphans("table = load_table()\n\ndef f():\n    return table\n")
    assert not goes and "may have effects" in left[0]


def test_a_decorated_helper_stays_and_is_named() -> None:
    goes, left = orphans("@register\ndef a():\n    return 1\n\ndef f():\n    return a()\n")
    assert not goes and "is decorated" in left[0]


def test_a_value_with_two_bindings_stays_and_is_named() -> None:
    goes, left = orphans("if x:\n    m = 1\nelse:\n    m = 2\n\ndef f():\n    return m\n")
    assert not goes and "several places" in left[0]


def test_a_helper_imported_by_a_test_stays_without_a_word() -> None:
    source = "def a():\n    return 1\n\ndef f():\n    return a()\n"
    assert orphans(source, test_x_dot_py="from train import a\n") == ([], [])


def test_a_helper_named_in_a_text_file_stays_and_is_named() -> None:
    goes, left = orphans("def a():\n    return 1\n\ndef f():\n    return a()\n", notes_dot_md="see a\n")
    assert not goes and "notes.md:1" in left[0]


def test_constants_and_loaded_metrics_go_with_their_imports() -> None:
    source = (
        "import evaluate\n\nNAMES = ['x', 'y']\nmetric = evaluate.load('wer')\n\ndef f():\n    return metric, NAMES\n"
    )
    assert orphans(source) == (["NAMES", "evaluate", "metric"], [])


def test_values_of_an_enclosing_function_go_too() -> None:
    inner = "    metric = evaluate.load('wer')\n\n    def f():\n        return metric\n\n    run()\n"
    source = "import evaluate\n\ndef main():\n" + inner
    assert orphans(source) == (["evaluate", "metric"], [])
