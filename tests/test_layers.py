"""The arrows of docs/architecture.md, read from the import statements: they go one way, and few modules write or print."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from codemods.codemod import TOPICS, built_in
from ddpfix.catalog import topic_words

HERE = Path(__file__).parent.parent
PACKAGES = ("codemods", "ddpfix")
MODULES = {
    ".".join(p.relative_to(HERE).with_suffix("").parts).removesuffix(".__init__"): p
    for package in PACKAGES
    for p in sorted((HERE / package).rglob("*.py"))
}
WRITES_SOURCE = {
    "codemods.rewriter", "codemods.run_writer", "codemods.layout", "codemods.blocks", "codemods.import_names",
    "codemods.commands",
}  # fmt: skip
CODEMODS_ORDER = [
    {"codemods.record", "codemods.late_pattern"},
    {"codemods.findings"},
    {"codemods.source", "codemods.spelling", "codemods.evidence"},
    {"codemods.shell_words", "codemods.json_values"},
    {"codemods.text_file"},
    {"codemods.notebook", "codemods.notebook_json", "codemods.notebook_magics", "codemods.notebook_places"},
    {"codemods.text_entries", "codemods.passages"},
    {"codemods.project", "codemods.corpus", "codemods.sites", "codemods.spoken", "codemods.import_statements"},
    {"codemods.data"},
    {"codemods.analysis"},
    {"codemods.codemod", "codemods.runs", "codemods.layout", "codemods.blocks", "codemods.import_names", "codemods.deep_stack",
     "codemods.run_writer", "codemods.rewriter", "codemods.imports", "codemods.suppressions", "codemods.text_edits",
     "codemods.text_meaning"},
    {f"codemods.{topic}" for topic in TOPICS},
    {"codemods.find"},
    {"codemods.by_hand", "codemods.lineage", "codemods.told_once", "codemods.clashes", "codemods.fix_source"},
    {"codemods.commands"},
]  # fmt: skip
DDPFIX_ORDER = [
    {"ddpfix.settings", "ddpfix.results", "ddpfix.diff", "ddpfix.ignore_rules", "ddpfix.patches", "ddpfix.catalog",
     "ddpfix.unpickling", "ddpfix.escaping"},
    {"ddpfix.discovery", "ddpfix.answers", "ddpfix.trust", "ddpfix.bowler_rewrites", "ddpfix.plugins", "ddpfix.cache",
     "ddpfix.gate", "ddpfix.workers", "ddpfix.engine"},
    {"ddpfix.baseline", "ddpfix.narrowing"},
    {"ddpfix.decisions", "ddpfix.decided", "ddpfix.silence", "ddpfix.summary", "ddpfix.outputs", "ddpfix.git",
     "ddpfix.formatting", "ddpfix.scaffold", "ddpfix.first_files", "ddpfix.settings_schema"},
    {"ddpfix.repository_state", "ddpfix.run", "ddpfix.undo", "ddpfix.checking"},
    {"ddpfix.prove", "ddpfix.diagnosis"},
    {"ddpfix.api"},
    {"ddpfix.review", "ddpfix.tune", "ddpfix.bot"},
    {"ddpfix.fleet"},
    {"ddpfix.testing"},
    {"ddpfix.cli"},
]  # fmt: skip


def imported(path: Path, *, late: bool = True) -> set[str]:
    """Modules that a file imports; `late` takes those inside functions along."""
    found: set[str] = set()
    nodes = ast.walk(ast.parse(path.read_bytes())) if late else _at_import(ast.parse(path.read_bytes()))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names if f"{node.module}.{alias.name}" in MODULES}
    return found


def _at_import(tree: ast.Module) -> list[ast.AST]:
    stack: list[ast.AST] = [tree]
    out: list[ast.AST] = []
    while stack:
        node = stack.pop()
        out.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _for_types(node):
            stack += ast.iter_child_nodes(node)
    return out


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def step_of(module: str, order: list[set[str]]) -> int | None:
    return next((i for i, step in enumerate(order) for name in step if module == name or module.startswith(name + ".")), None)


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("codemods")])
def test_codemods_never_import_the_application(name: str) -> None:
    assert not [m for m in imported(MODULES[name]) if m.partition(".")[0] == "ddpfix"]


@pytest.mark.parametrize("name", MODULES)
def test_libcst_is_imported_where_source_is_written_only(name: str) -> None:
    if name not in WRITES_SOURCE:
        assert not [m for m in imported(MODULES[name]) if m.partition(".")[0] == "libcst"]
        assert not {m for m in imported(MODULES[name], late=False) if m in WRITES_SOURCE}, "import it where it is used"


@pytest.mark.parametrize("name", MODULES)
def test_yaml_is_imported_only_where_a_file_is_read(name: str) -> None:
    assert "yaml" not in imported(MODULES[name], late=False), "PyYAML costs 20 ms: only where a file passed the gate"


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("codemods.") and n != "codemods.codemod"])
def test_arrows_in_codemods_go_one_way(name: str) -> None:
    # an analysis may need the planner of imports or the words of the gate, which stand on names alone
    lent = {"codemods.imports", "codemods.codemod", "codemods.runs"} if name.startswith("codemods.analysis") else set()
    own = step_of(name, CODEMODS_ORDER)
    assert own is not None, "give it a step in CODEMODS_ORDER"
    for module in imported(MODULES[name]):
        step = step_of(module, CODEMODS_ORDER)
        assert step is None or step <= own or module in lent or any(module.startswith(x + ".") for x in lent), module


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("ddpfix.")])
def test_arrows_in_the_application_go_one_way(name: str) -> None:
    own = step_of(name, DDPFIX_ORDER)
    if own is not None:
        later = {m for m in imported(MODULES[name]) if (step_of(m, DDPFIX_ORDER) or 0) > own}
        assert not later


def test_no_module_imports_in_a_circle() -> None:
    arrows = {name: {m for m in imported(path, late=False) if m in MODULES and m != name} for name, path in MODULES.items()}
    arrows = {name: {m for m in found if not name.startswith(m + ".")} for name, found in arrows.items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for module in arrows[name]:
                visit(module, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("codemods.analysis")])
def test_analyses_know_no_codemod(name: str) -> None:
    topics = tuple(f"codemods.{topic}" for topic in TOPICS)
    assert not [m for m in imported(MODULES[name]) if m.startswith(topics)]


# Who writes and who prints

# the package that delivers, the cache and the answers in the user's own folder, copies and traces in passing ones, and the
# files that a probe, a check and a review are asked for; Bowler's own cache in ours, and the new files of a new codemod
WRITERS = {"ddpfix.git", "ddpfix.cache", "ddpfix.answers", "ddpfix.formatting", "ddpfix.prove.tracer._ddpfix_tracer.recorder",
           "ddpfix.diagnosis.probe", "ddpfix.outputs.files", "ddpfix.decisions", "ddpfix.bowler_rewrites",
           "ddpfix.cli.commands.new_codemod", "ddpfix.review.editing", "ddpfix.bot.state", "ddpfix.trust"}
WRITING = {"write_text", "write_bytes", "unlink", "rename", "replace", "rmdir", "mkdir", "makedirs", "remove", "rmtree", "touch",
           "chmod", "symlink", "link", "truncate", "copy", "copyfile", "move", "mkdtemp"}  # fmt: skip
FILE_OWNERS = {"os", "shutil", "tempfile", "Path", "path", "target", "place", "fresh", "folder", "file"}


def writes(path: Path) -> list[str]:
    """Calls that change the disk, told from those of the same name on texts and dataclasses by what they are called on."""
    out = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            mode = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
            if any(isinstance(m, ast.Constant) and set(str(m.value)) & set("wax+") for m in mode):
                out.append(ast.unparse(node))
        elif isinstance(node.func, ast.Attribute) and node.func.attr in WRITING:
            owner = node.func.value
            if node.func.attr in ("write_text", "write_bytes", "unlink", "rmtree", "makedirs") or (
                isinstance(owner, ast.Name) and owner.id in FILE_OWNERS and (node.func.attr != "replace" or owner.id == "os")
            ):
                out.append(ast.unparse(node))
    return out


@pytest.mark.parametrize("name", MODULES)
def test_few_modules_write(name: str) -> None:
    if name not in WRITERS and not name.startswith("ddpfix.git."):
        assert writes(MODULES[name]) == []


PRINTERS = ("ddpfix.cli", "ddpfix.__main__", "ddpfix.review")


@pytest.mark.parametrize("name", [n for n in MODULES if not n.startswith(PRINTERS)])
def test_only_the_command_line_prints(name: str) -> None:
    for node in ast.walk(ast.parse(MODULES[name].read_bytes())):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("print", "input", "sys.stdout.write", "sys.exit"), ast.unparse(node)


# Names that must agree


def test_a_topic_is_a_folder_and_a_word_to_select() -> None:
    folders = {p.name for p in (HERE / "codemods").iterdir() if p.is_dir() and not p.name.startswith("__")}
    assert folders == {*TOPICS, "analysis", "data"}
    assert topic_words() == tuple(topic.replace("_", "-") for topic in TOPICS)
    assert {c.topic() for c in built_in()} <= set(TOPICS)


def test_every_package_is_typed() -> None:
    assert all((HERE / package / "py.typed").is_file() for package in PACKAGES)
