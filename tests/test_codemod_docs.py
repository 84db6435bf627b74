"""Every codemod's page: its sections, its example as the codemod really repairs it, its names, its test file."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest

from codemods.api.codemod import SECTIONS, DdpCodemod
from codemods.engine.fix_source import Accept, FixResult, fix_project, safe, with_unsafe
from codemods.store.project import Project
from ddpfix.catalog import all_codemods
from ddpfix.testing import findings_of

HERE = Path(__file__).parent.parent
CODEMODS = all_codemods()
BLOCK = re.compile(r"^```(?:python|yaml|bash)\n(.*?)^```$", re.M | re.S)

codemods = pytest.mark.parametrize("codemod", CODEMODS, ids=lambda c: f"{c.code}-{c.rule_name()}")


def block(codemod: DdpCodemod, section: str) -> str:
    (text,) = BLOCK.findall(codemod.sections()[section])
    return str(text)


def name_of(codemod: DdpCodemod) -> str:
    """What the file of the example is called."""
    example = codemod.sections()["Example"]
    return "config.yaml" if "```yaml" in example else "run.sh" if "```bash" in example else "module.py"


def repaired(source: str, codemod: DdpCodemod, accept: Accept) -> FixResult:
    """The example fixed; its first line may say what the requirements pin, or how a job file starts it."""
    files = {name_of(codemod): source.encode()}
    if beside := re.match(r"# (requirements\.txt|run\.sh): (.+)\n", source):
        files[beside.group(1)] = beside.group(2).encode()
    return fix_project(Project.of(files), lambda _p, paths: {p: [codemod] for p in paths}, [name_of(codemod)], accept)


@codemods
def test_the_page_has_its_sections_in_order(codemod: DdpCodemod) -> None:
    assert tuple(codemod.sections()) == SECTIONS
    assert all(codemod.sections().values())


@codemods
def test_the_summary_is_one_sentence(codemod: DdpCodemod) -> None:
    summary = codemod.summary()
    assert summary.endswith(".") and len(summary) < 130 and "\n" not in summary
    assert (inspect.getdoc(type(codemod)) or "").splitlines()[1] == ""


@codemods
def test_the_example_and_its_repair_are_python(codemod: DdpCodemod) -> None:
    for section in ("Example", "Use instead"):
        if name_of(codemod) == "module.py":
            compile(block(codemod, section), section, "exec", dont_inherit=True)
    assert block(codemod, "Example") != block(codemod, "Use instead")


@codemods
def test_the_example_is_mended_as_the_page_says(codemod: DdpCodemod) -> None:
    before, after = block(codemod, "Example"), block(codemod, "Use instead")
    if codemod.sections()["Safety"].startswith("There is no fix"):
        assert findings_of(type(codemod), before, path=name_of(codemod))
        assert not findings_of(type(codemod), after, path=name_of(codemod)), "what the page advises is told again"
        return
    result = repaired(before, codemod, safe)
    if not result.changed:
        result = repaired(before, codemod, with_unsafe)
        assert re.search(r"\bunsafe\b", codemod.sections()["Safety"], re.I), "the page does not say that the fix is an unsafe one"
    assert not result.withdrawn
    assert result.changed[name_of(codemod)].decode() == after
    assert not repaired(after, codemod, with_unsafe).changed, "its own repair is repaired again"


@codemods
def test_what_is_refused_is_said(codemod: DdpCodemod) -> None:
    assert len(codemod.sections()["Refuses"].split()) > 5


@codemods
def test_code_and_names(codemod: DdpCodemod) -> None:
    assert re.fullmatch(r"DDP\d{3}", codemod.code)
    camel = "".join(part.capitalize() for part in codemod.file_name().split("_"))
    assert type(codemod).__name__ == camel
    module = sys.modules[type(codemod).__module__]
    assert (module.__doc__ or "").startswith(f"{codemod.code}: ")
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, DdpCodemod)]
    own = [cls for cls in classes if cls.__module__ == module.__name__]
    assert own == [type(codemod)], "one codemod, one file"


def test_codes_and_names_are_given_once() -> None:
    assert len({c.code for c in CODEMODS}) == len({c.rule_name() for c in CODEMODS}) == len(CODEMODS)


@codemods
def test_the_test_file_has_the_name_of_the_codemod(codemod: DdpCodemod) -> None:
    path = HERE / "tests" / "codemods" / f"test_{codemod.file_name()}.py"
    assert path.is_file()
    imports = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom)]
    assert type(codemod).__name__ in {alias.name for node in imports for alias in node.names}


def test_no_test_file_without_a_codemod() -> None:
    tested = {p.name.removeprefix("test_").removesuffix(".py") for p in (HERE / "tests" / "codemods").glob("test_*.py")}
    assert tested == {c.file_name() for c in CODEMODS}
