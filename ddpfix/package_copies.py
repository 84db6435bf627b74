"""Copies of published packages inside a repository: `fairseq/` with its own setup.py and licence, `external/rasterizer/`.

Their home is elsewhere, so nobody wants a change of them here; the project imports from them, so they stay readable. A copy is
shown by its own metadata, which names another distribution than the root's, by its own licence, and by a reason to think that it
was published: the name is a known one, an index made it (PKG-INFO), or it lies in a folder for other people's code. Packages of
a monorepo have metadata too, and none of these reasons.

A release that was unpacked says so by its folder, `transformers-3.0.2/`: a known name and a version. It needs no licence, which
is often left out; but where a text or a program beside it names its examples or tools, these are programs of the project.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping

from codemods.data.published_packages import PUBLISHED

Read = Callable[[str], bytes]  # the bytes of a file below the root, b"" where it cannot be read

_METADATA = ("setup.py", "pyproject.toml", "setup.cfg")
_LICENCES = ("license", "licence", "copying")
_FOR_OTHERS = frozenset(
    {"third_party", "third-party", "thirdparty", "3rdparty", "vendor", "vendored", "_vendor", "external", "externals", "extern",
     "submodules", "dependencies"}
)  # fmt: skip
# Beside a package: programs that show or try it. They are no programs of this project.
_SHOWN = frozenset(
    {"benchmark", "benchmarks", "demo", "demos", "example", "examples", "projects", "scripts", "templates", "test", "tests",
     "tools", "tutorials"}
)  # fmt: skip
_SOURCES = ("", "src/", "python/")
_RELEASE = re.compile(r"([A-Za-z][\w.-]*?)[-_]v?\d+(?:\.\d+)+(?:[-.]?(?:a|b|rc|post|dev)\d+)?")
_TELLING = (".py", ".ipynb", ".sh", ".bash", ".md", ".rst", ".txt", ".yaml", ".yml", ".json", ".toml", "Makefile", "Dockerfile")
_NAMED = re.compile(rb"^[ \t]*Name:[ \t]*([\w.-]+)", re.M)
_IN_CFG = re.compile(rb"^\[metadata\][^\[]*?^name[ \t]*=[ \t]*([\w.-]+)", re.M)


def package_copies(names: Iterable[str], read: Read) -> Mapping[str, str]:
    """Folder -> the distribution that it is a copy of. Nothing where the rest of the repository is no project of its own."""
    known = set(names)
    licensed = {n.rpartition("/")[0] for n in known if "/" in n and n.rpartition("/")[2].lower().startswith(_LICENCES)}
    licensed |= {n.rpartition("/")[0] for n in known if n.endswith("/PKG-INFO")}
    homes = sorted(f for f in licensed | _releases(known) if any(f"{f}/{m}" in known for m in _METADATA) and ".egg-info" not in f)
    if not homes:
        return {}
    own = _distribution("", known, read)
    found: dict[str, str] = {}
    for folder in homes:
        if any(folder.startswith(f"{outer}/") for outer in found):
            continue
        name = _distribution(f"{folder}/", known, read)
        if not (name and name != own and _was_published(folder, name, own, known) and _holds_a_package(folder, known)):
            continue
        if folder in licensed or (_released(folder) == name and not _is_worked_in(folder, known, read)):
            found[folder] = name
    return found if _is_a_project(known, found, read) else {}


def programs_of_copies(names: Iterable[str], copies: Collection[str]) -> frozenset[str]:
    """What stands beside the packages of copies: examples, tests and tools."""
    if not copies:
        return frozenset()
    return frozenset(n for n in names if any(n.startswith(f"{f}/") and n[len(f) + 1 :].split("/")[0] in _SHOWN for f in copies))


def copy_of(name: str, copies: Iterable[str]) -> str:
    """The folder of the copy that a file lies in, "" for a file of the project."""
    return next((f for f in copies if name.startswith(f"{f}/")), "")


def is_inside(asked: str, folder: str) -> bool:
    """True where the user asks for that folder itself, or for something in it."""
    return asked == folder or asked.startswith(f"{folder}/")


def _was_published(folder: str, name: str, own: str, known: set[str]) -> bool:
    if f"{folder}/PKG-INFO" in known or not _FOR_OTHERS.isdisjoint(folder.split("/")[:-1]):
        return True
    return name in PUBLISHED and own not in PUBLISHED  # a family of packages may be developed in one repository


def _releases(known: set[str]) -> set[str]:
    homes = {n.rpartition("/")[0] for n in known if n.rpartition("/")[2] in _METADATA}
    return {f for f in homes if _released(f) in PUBLISHED}


def _released(folder: str) -> str:
    """`torch-scatter` of `libs/torch_scatter-2.0.9`, "" for a folder whose name ends in no version."""
    found = _RELEASE.fullmatch(folder.rpartition("/")[2])
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _is_worked_in(folder: str, known: set[str], read: Read) -> bool:
    """True where a file beside the copy names one of its programs, by the folder (`x-1.0/examples`) or once it is in there."""
    name = re.escape(folder.rpartition("/")[2].encode())
    shown = b"|".join(s.encode() for s in sorted(_SHOWN))
    program = re.compile(rb"\b" + name + rb"/(?:" + shown + rb")\b|(?<![\w/.-])(?:\./)?(?:" + shown + rb")/[\w./-]+")
    named = re.compile(rb"\b" + name + rb"(?![\w.-])")
    for file in sorted(n for n in known if not n.startswith(f"{folder}/") and n.endswith(_TELLING)):
        data = read(file)
        if named.search(data) and any(_is_theirs(m[0], folder, known) for m in program.finditer(data)):
            return True
    return False


def _is_theirs(said: bytes, folder: str, known: set[str]) -> bool:
    """True for what lies in the copy: of `examples/run.sh` it is asked, since the project may have examples of its own."""
    path = said.decode(errors="replace").removeprefix("./")
    inside = path.partition("/")[2] if path.startswith(folder.rpartition("/")[2]) else path.rstrip("./")
    return any(n == f"{folder}/{inside}" or n.startswith(f"{folder}/{inside}/") for n in known)


def _holds_a_package(folder: str, known: set[str]) -> bool:
    packages = re.compile(rf"{re.escape(folder)}/(?:{'|'.join(_SOURCES)})\w+/__init__\.py")
    return any(packages.fullmatch(n) for n in known)


def _is_a_project(known: set[str], copies: Mapping[str, str], read: Read) -> bool:
    """True where a program beside the copies uses torch or one of them: else the copy is what is worked on here."""
    if not copies:
        return False
    words = [b"torch", *(folder.rpartition("/")[2].encode() for folder in copies)]
    outside = (n for n in sorted(known) if n.endswith(".py") and n.rpartition("/")[2] != "setup.py" and not copy_of(n, copies))
    return any(word in data for data in map(read, outside) for word in words)


def _distribution(below: str, known: set[str], read: Read) -> str:
    """What the metadata of a folder names, as an index spells it; "" where that is not written out."""
    readers: tuple[tuple[str, Callable[[bytes], str]], ...] = (
        ("PKG-INFO", lambda data: _first(_NAMED, data)),
        ("pyproject.toml", _in_toml),
        ("setup.cfg", lambda data: _first(_IN_CFG, data)),
        ("setup.py", _in_setup),
    )
    found = (reader(read(f"{below}{file}")) for file, reader in readers if f"{below}{file}" in known)
    return re.sub(r"[-_.]+", "-", next((n for n in found if n), "")).lower()


def _first(pattern: re.Pattern[bytes], data: bytes) -> str:
    found = pattern.search(data)
    return found[1].decode(errors="replace") if found else ""


def _in_toml(data: bytes) -> str:
    from ddpfix.settings import toml

    try:
        tables = toml(data)
    except ValueError:
        return ""
    tools = tables.get("tool")
    for table in (tables.get("project"), tools.get("poetry") if isinstance(tools, dict) else None):
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            return str(table["name"])
    return ""


def _in_setup(data: bytes) -> str:
    """`setup(name="apex")`, also over a name that the file gives one text."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    texts = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        if (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) != "setup":
            continue
        for keyword in call.keywords:
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
                return keyword.value.value
            if keyword.arg == "name" and isinstance(keyword.value, ast.Name):
                return texts.get(keyword.value.id, "")
    return ""
