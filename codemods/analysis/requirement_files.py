"""The files that pin dependencies (requirements, pyproject, setup, conda, lock files) -> every pin with its line."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from posixpath import basename, dirname

from codemods.analysis.version_pins import Pin
from codemods.runtime.lazy_pattern import lazy

_REQUIREMENT = lazy(
    r"^\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?"
    r"\s*(?P<spec>(?:\(?\s*[<>=!~^]=?=?[^;#@()]*\)?)|@[^;#]*)?\s*(?:[;#].*)?$"
)
# What `pip list`, `conda list` and `conda list --export` print: `torch  2.0.1+cu118  <pip>`, `pytorch=1.7.1=py3.8_cuda11.0`
_PRINTED = lazy(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:[ \t]+(?P<listed>\d+\.\d[\w.+!-]*)(?:[ \t].*)?|=(?P<exported>\d[\w.+!-]*)=\S+)$"
)
_LOCKED = lazy(r'^\[\[packages?\]\]\s*\nname = "([^"]+)"\s*\nversion = "([^"]+)"', re.M)
_LOCKED_BY_PIPENV = lazy(
    r'"(?P<package>[A-Za-z0-9][\w.-]*)":\s*\{(?:[^{}]|\{[^{}]*\})*?"version":\s*"(?P<version>[=<>~!][^"]*)"'
)
_CONDA = lazy(
    r"^\s*-\s*[\"']?(?:[\w./-]+::)?([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*([<>=!~|][^\"'#]*)?[\"']?\s*(?:#.*)?$"
)

_OF_ENVIRONMENTS = frozenset({"env", "envs", "environment", "environments", "conda", "conda_envs", "conda-envs", "requirements"})
LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "pipfile.lock")
# Not a package: the versions of Python that a package of the repository may be installed with, where they have an end.
REQUIRES_PYTHON = "requires-python"
# conda calls two packages by names that pip does not use for them
CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}


def normalized(name: str) -> str:
    """The name as PEP 503 compares it: `PyTorch_Lightning` is `pytorch-lightning`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def reader_of(path: str) -> Callable[[str, str], Iterator[Pin]] | None:
    """The function that reads the pins of a file of this name, or None where such a file pins nothing."""
    name = basename(path).lower()
    if name == "pipfile.lock":
        return _pipfile_lock
    if name in LOCK_FILES:
        return _lock
    if name in ("pyproject.toml", "pipfile"):
        return _toml
    if name == "setup.py":
        return _setup_py
    if name == "setup.cfg":
        return _setup_cfg
    if fnmatch(name, "*requirement*.txt") or fnmatch(name, "*requirement*.in") or fnmatch(name, "constraints*.txt"):
        return _requirements
    if name.endswith(".txt") and "requirements/" in path:
        return _requirements
    if name.endswith((".yml", ".yaml")):
        if "env" in name or "conda" in name:
            return _conda
        return _conda_of_any_name if path.count("/") == 0 or basename(dirname(path)).lower() in _OF_ENVIRONMENTS else None
    return None


def read_pins(path: str, data: bytes) -> tuple[Pin, ...]:
    """Every pin of one file; nothing where it cannot be read."""
    reader = reader_of(path)
    if reader is None:
        return ()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"  # PowerShell's `pip freeze >`
    text = data.decode(encoding, "replace").replace("\r\n", "\n")
    return tuple(reader(path, text))


def requirement(text: str, path: str, line: int) -> Pin | None:
    """The pin that a line in pip's spelling makes: `name[extra] >=1,<2 ; marker`."""
    match = _REQUIREMENT.match(text)
    if match is None:
        return None
    spec = " ".join((match["spec"] or "").strip().strip("()").split())
    return Pin(normalized(match["name"]), spec, path, line)


def _requirements(path: str, text: str) -> Iterator[Pin]:
    for number, line in enumerate(text.split("\n"), 1):
        if (printed := _PRINTED.match(line.rstrip())) is not None:
            name, version = normalized(printed["name"]), printed["listed"] or printed["exported"]
            yield Pin(CONDA_NAMES.get(name, name), f"=={version}", path, number)
            continue
        bare = re.split(r"\s--?\w|\\$", line)[0]  # per-requirement options and continuation lines
        if not line.lstrip().startswith(("#", "-")) and (pin := requirement(bare, path, number)):
            yield pin


def _lock(path: str, text: str) -> Iterator[Pin]:
    for match in _LOCKED.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        yield Pin(normalized(match[1]), f"=={match[2]}", path, line)


def _pipfile_lock(path: str, text: str) -> Iterator[Pin]:
    """What Pipenv wrote down: JSON, with `"torch": {…, "version": "==1.10.1"}` under "default" and "develop"."""
    for match in _LOCKED_BY_PIPENV.finditer(text):
        line = text.count("\n", 0, match.start("version")) + 1
        yield Pin(normalized(match["package"]), match["version"], path, line)


def _conda(path: str, text: str) -> Iterator[Pin]:
    lines = text.split("\n")
    channels = next((i for i, line in enumerate(lines) if line.startswith("dependencies:")), 0)
    for number, line in enumerate(lines, 1):
        if number > channels and (match := _CONDA.match(line)):
            name, spec = normalized(match[1]), (match[2] or "").strip()
            if re.match(r"=[^=]", spec):
                spec = "=" + spec[1:].partition("=")[0]  # a build string may follow
            yield Pin(CONDA_NAMES.get(name, name), spec, path, number)


def _conda_of_any_name(path: str, text: str) -> Iterator[Pin]:
    """`mymodel.yml` at the root, or in a folder of environments, is one where it lists channels and dependencies."""
    if re.search(r"^channels:", text, re.M) and re.search(r"^dependencies:", text, re.M):
        yield from _conda(path, text)


def _setup_cfg(path: str, text: str) -> Iterator[Pin]:
    in_options = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("["):
            in_options = line.startswith("[options")
        elif in_options:
            value = line.strip() if line[:1].isspace() else line.partition("=")[2].strip()
            is_list = line[:1].isspace() or re.match(r"install_requires\s*=", line)
            key, _, given = line.partition("=")
            if key.strip() == "python_requires":
                yield from _of_python(given, path, number)
            elif value and is_list and not value.startswith("#") and (pin := requirement(value, path, number)):
                yield pin


def _setup_py(path: str, text: str) -> Iterator[Pin]:
    """Strings that read like requirements: with a comparison anywhere, bare names only as elements of a list."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    listed = {id(e) for n in ast.walk(tree) if isinstance(n, (ast.List, ast.Tuple)) for e in n.elts}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "python_requires" and isinstance(node.value, ast.Constant):
            yield from _of_python(node.value.value, path, node.value.lineno)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            pin = requirement(node.value, path, node.lineno)
            if pin is not None and (pin.spec or id(node) in listed):
                yield pin


def _of_python(spec: object, path: str, line: int) -> Iterator[Pin]:
    """The requirement for Python, if it has an end: `>=3.8` rules out nothing that is newer."""
    if isinstance(spec, str) and (pin := Pin(REQUIRES_PYTHON, spec.strip(), path, line)).below is not None:
        yield pin


# TOML


def _toml(path: str, text: str) -> Iterator[Pin]:
    import tomllib

    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError):  # no TOML; a number of thousands of digits; arrays in arrays without end
        return
    lines = text.split("\n")
    project = _table(tree, "project")
    groups = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    groups += _table(tree, "dependency-groups").values()
    yield from _of_python(project.get("requires-python"), path, _line_of_key(lines, "requires-python"))
    tool = _table(tree, "tool")
    poetry = _table(_table(tool, "poetry"), "dependencies")
    yield from _of_python(poetry.get("python"), path, _line_of_key(lines, "python"))
    for name in ("uv", "pdm"):
        more = _table(tool, name).get("dev-dependencies")
        groups += more.values() if isinstance(more, dict) else [more]
    for group in groups:
        for item in group if isinstance(group, list) else ():
            if isinstance(item, str) and (pin := requirement(item, path, _line_with(lines, item))):
                yield pin
    for table in _name_tables(tree, tool):
        for name, value in table.items():
            if (spec := _spec_of(value)) is not None and name != "python":
                yield Pin(normalized(name), spec, path, _line_of_key(lines, name))


def _name_tables(tree: Mapping[str, object], tool: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Tables of `name = "spec"`: Poetry's, pixi's, Pipenv's."""
    poetry, pixi = _table(tool, "poetry"), _table(tool, "pixi")
    yield _table(poetry, "dependencies")
    yield _table(poetry, "dev-dependencies")
    for group in _table(poetry, "group").values():
        if isinstance(group, dict):
            yield _table(group, "dependencies")
    yield _table(pixi, "dependencies")
    yield _table(pixi, "pypi-dependencies")
    yield _table(tree, "packages")


def _table(tree: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _spec_of(value: object) -> str | None:
    """The specifier of a Poetry entry, "" for one that names a source instead of a version."""
    if isinstance(value, str):
        return "" if value == "*" else value
    if isinstance(value, dict):
        return _spec_of(value.get("version", ""))
    if isinstance(value, list):
        return " || ".join(spec for item in value if (spec := _spec_of(item)) is not None)
    return None


def _line_with(lines: list[str], text: str) -> int:
    return next((i for i, line in enumerate(lines, 1) if f'"{text}"' in line or f"'{text}'" in line), 0)


def _line_of_key(lines: list[str], name: str) -> int:
    return next((i for i, line in enumerate(lines, 1) if re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line)), 0)
