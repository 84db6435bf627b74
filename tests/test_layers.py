"""The arrows of docs/architecture.md, read from the import statements: they go one way, and few modules write or print."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from codemods.api.codemod import TOPICS, built_in
from ddpfix.catalog import topic_words

HERE = Path(__file__).parent.parent
PACKAGES = ("codemods", "ddpfix")
MODULES = {
    ".".join(p.relative_to(HERE).with_suffix("").parts).removesuffix(".__init__"): p
    for package in PACKAGES
    for p in sorted((HERE / package).rglob("*.py"))
}
WRITES_SOURCE = {
    "codemods.rewriting.rewriter", "codemods.rewriting.run_writer", "codemods.rewriting.layout", "codemods.rewriting.blocks",
    "codemods.rewriting.import_names", "codemods.rewriting.continued_lines", "codemods.libcst_commands",
}  # fmt: skip
CODEMODS_ORDER = [
    {"codemods.runtime"},
    {"codemods.api.findings", "codemods.api.evidence"},
    {"codemods.files"},
    {"codemods.store"},
    {"codemods.data"},
    {"codemods.api.codemod", "codemods.rewriting.runs"},
    {"codemods.analysis"},
    {"codemods.rewriting"},
    {f"codemods.{topic}" for topic in TOPICS},
    {"codemods.engine"},
    {"codemods.libcst_commands"},
]
# the rooms that hold no codemods
ROOMS = {"runtime", "api", "files", "store", "data", "analysis", "rewriting", "engine"}
DDPFIX_ORDER = [
    {"ddpfix.settings", "ddpfix.results", "ddpfix.diff", "ddpfix.ignore_rules", "ddpfix.patches", "ddpfix.catalog",
     "ddpfix.unpickling", "ddpfix.escaping", "ddpfix.metrics"},
    {"ddpfix.discovery", "ddpfix.package_copies", "ddpfix.unlisted", "ddpfix.answers", "ddpfix.trust",
     "ddpfix.bowler_rewrites", "ddpfix.project_renames", "ddpfix.plugins", "ddpfix.cache", "ddpfix.gate", "ddpfix.workers",
     "ddpfix.store", "ddpfix.judging", "ddpfix.rejudging", "ddpfix.engine"},
    {"ddpfix.baseline", "ddpfix.narrowing"},
    {"ddpfix.decisions", "ddpfix.decided", "ddpfix.silence", "ddpfix.summary", "ddpfix.outputs", "ddpfix.git",
     "ddpfix.formatting", "ddpfix.scaffold", "ddpfix.first_files", "ddpfix.settings_schema"},
    {"ddpfix.repository_state", "ddpfix.run", "ddpfix.undo", "ddpfix.checking"},
    {"ddpfix.prove", "ddpfix.diagnosis"},
    {"ddpfix.api"},
    {"ddpfix.review", "ddpfix.tune", "ddpfix.bot", "ddpfix.lsp"},
    {"ddpfix.fleet"},
    {"ddpfix.testing"},
    {"ddpfix.cli"},
]  # fmt: skip


@cache
def calls(path: Path) -> tuple[ast.Call, ...]:
    return tuple(node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))


@cache
def imported(path: Path, *, late: bool = True) -> frozenset[str]:
    """Modules that a file imports; `late` takes those inside functions along."""
    found: set[str] = set()
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree) if late else _at_import(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names if f"{node.module}.{alias.name}" in MODULES}
    return frozenset(found)


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


def below(package: str) -> dict[str, Path]:
    return {name: path for name, path in MODULES.items() if name.startswith(package)}


def test_codemods_never_import_the_application() -> None:
    assert [n for n, path in below("codemods").items() if any(m.partition(".")[0] == "ddpfix" for m in imported(path))] == []


def test_libcst_is_imported_where_source_is_written_only() -> None:
    others = {name: path for name, path in MODULES.items() if name not in WRITES_SOURCE}
    assert [n for n, path in others.items() if any(m.partition(".")[0] == "libcst" for m in imported(path))] == []
    at_import = {n: found for n, path in others.items() if (found := imported(path, late=False) & WRITES_SOURCE)}
    assert at_import == {}, "import it where it is used"


def test_yaml_is_imported_only_where_a_file_is_read() -> None:
    at_import = [n for n, path in MODULES.items() if "yaml" in imported(path, late=False)]
    assert at_import == [], "PyYAML costs 20 ms: only where a file passed the gate"


def test_arrows_in_codemods_go_one_way() -> None:
    names = below("codemods.").keys() - {"codemods.api", "codemods.api.codemod"}
    assert [n for n in names if step_of(n, CODEMODS_ORDER) is None] == [], "give it a step in CODEMODS_ORDER"
    assert [(n, later) for n in sorted(names) if (later := _later(n, CODEMODS_ORDER) - _lent(n))] == []


def _lent(name: str) -> set[str]:
    """An analysis may need the planner of imports, which stands on names alone."""
    planner = "codemods.rewriting.imports"
    return {m for m in imported(MODULES[name]) if name.startswith("codemods.analysis") and (m + ".").startswith(planner + ".")}


def _later(name: str, order: list[set[str]]) -> set[str]:
    own = step_of(name, order)
    return set() if own is None else {m for m in imported(MODULES[name]) if (step_of(m, order) or 0) > own}


def test_arrows_in_the_application_go_one_way() -> None:
    assert [(n, later) for n in below("ddpfix.") if (later := _later(n, DDPFIX_ORDER))] == []


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


def test_analyses_know_no_codemod() -> None:
    topics = tuple(f"codemods.{topic}" for topic in TOPICS)
    assert [n for n, path in below("codemods.analysis").items() if any(m.startswith(topics) for m in imported(path))] == []


# Who writes and who prints

# the package that delivers, the cache and the answers in the user's own folder, copies and traces in passing ones, and the
# files that a probe, a check and a review are asked for; Bowler's own cache in ours, and the new files of a new codemod
WRITERS = {"ddpfix.git", "ddpfix.cache", "ddpfix.answers", "ddpfix.formatting", "ddpfix.prove.tracer._ddpfix_tracer.recorder",
           "ddpfix.diagnosis.probe", "ddpfix.outputs.files", "ddpfix.decisions", "ddpfix.bowler_rewrites",
           "ddpfix.cli.commands.new_codemod", "ddpfix.review.editing", "ddpfix.bot.state", "ddpfix.trust", "ddpfix.lsp.pages",
           "ddpfix.fleet.mirrors"}  # fmt: skip
WRITING = {"write_text", "write_bytes", "unlink", "rename", "replace", "rmdir", "mkdir", "makedirs", "remove", "rmtree", "touch",
           "chmod", "symlink", "link", "truncate", "copy", "copyfile", "move", "mkdtemp"}  # fmt: skip
FILE_OWNERS = {"os", "shutil", "tempfile", "Path", "path", "target", "place", "fresh", "folder", "file"}


def writes(path: Path) -> list[str]:
    """Calls that change the disk, told from those of the same name on texts and dataclasses by what they are called on."""
    out = []
    for node in calls(path):
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


def test_few_modules_write() -> None:
    others = {n: path for n, path in MODULES.items() if n not in WRITERS and not n.startswith("ddpfix.git.")}
    assert [(n, found) for n, path in others.items() if (found := writes(path))] == []


PRINTERS = ("ddpfix.cli", "ddpfix.__main__", "ddpfix.review")


PRINTS = {"print", "input", "sys.stdout.write", "sys.exit"}


def test_only_the_command_line_prints() -> None:
    others = {name: path for name, path in MODULES.items() if not name.startswith(PRINTERS)}
    assert [(n, ast.unparse(c)) for n, path in others.items() for c in calls(path) if _word(c.func) in PRINTS] == []


def _word(called: ast.expr) -> str:
    return ast.unparse(called) if isinstance(called, (ast.Name, ast.Attribute)) else ""


# Names that must agree


def test_a_topic_is_a_folder_and_a_word_to_select() -> None:
    folders = {p.name for p in (HERE / "codemods").iterdir() if p.is_dir() and not p.name.startswith("__")}
    assert folders == {*TOPICS, *ROOMS}
    assert topic_words() == tuple(topic.replace("_", "-") for topic in TOPICS)
    assert {c.topic() for c in built_in()} <= set(TOPICS)


def test_every_package_is_typed() -> None:
    assert all((HERE / package / "py.typed").is_file() for package in PACKAGES)
