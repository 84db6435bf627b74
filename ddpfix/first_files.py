"""What a repository wants for its first use: settings, a hook before each commit, a job in CI. Nothing is written here."""

from __future__ import annotations

from pathlib import Path

from codemods.runtime.record import record
from ddpfix import __version__, settings

SETTINGS, HOOKS, GITHUB, GITLAB = "ddpfix.toml", ".pre-commit-config.yaml", ".github/workflows/ddpfix.yml", ".gitlab-ci.yml"


@record
class FirstFile:
    """text: the whole of the file. what: for a question. left: why it is not offered; "" where it is."""

    path: str
    what: str
    text: str = ""
    left: str = ""


_SETTINGS = """\
# Settings of ddpfix. `ddpfix init --schema` prints all keys.
# ignore = ["DDP203"]             # codes, names and topics that are left out
# exclude = ["experiments/*"]     # paths that are left alone
unsafe-fixes = false              # true: make the fixes that rest on an assumption, too
fail-on = "unsafe"                # check exits with 1 from this level on: display, unsafe, safe
"""

# the hook runs the ddpfix of the environment in which people commit
_HOOK = """\
{0}- repo: local
{0}  hooks:
{0}    - id: ddpfix
{0}      name: ddpfix
{0}      entry: ddpfix check --force-exclude
{0}      language: system
{0}      types_or: [python, yaml, jupyter]
{0}      require_serial: true
"""

_GITHUB = """\
name: ddpfix
on: [pull_request]
permissions:
  contents: read
jobs:
  ddpfix:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: "3.12"
      - run: python -m pip install "ddpfix=={version}"
      - run: ddpfix check --output-format github .
"""

_GITLAB = """\
ddpfix:
  image: python:3.12
  script:
    - python -m pip install --quiet "ddpfix=={version}"
    - ddpfix check --output gitlab=gl-code-quality-report.json --output junit=ddpfix.xml .
  artifacts:
    when: always
    reports:
      codequality: gl-code-quality-report.json
      junit: ddpfix.xml
"""


def first_files(root: Path, *, gitlab: bool) -> tuple[FirstFile, ...]:
    """The three files of a repository; gitlab: its forge. Raises SettingsError, OSError."""
    job = _job(root, GITLAB, _GITLAB) if gitlab else _job(root, GITHUB, _GITHUB)
    return _settings(root), _hook(root), job


def _settings(root: Path) -> FirstFile:
    there = settings.source(root)
    if there is None:
        return FirstFile(SETTINGS, "settings", _SETTINGS)
    return FirstFile(SETTINGS, "settings", left="it is there already" if there.name == SETTINGS else f"{there.name} has them")


def _hook(root: Path) -> FirstFile:
    what = "a hook before each commit (pre-commit)"
    before = _text(root / HOOKS)
    if before is None:
        return FirstFile(HOOKS, what, "repos:\n" + _HOOK.format("  "))
    if "ddpfix" in before:
        return FirstFile(HOOKS, what, left="it names ddpfix already")
    wanted = _loaded(_HOOK.format(""))
    for indent in ("  ", "", "    "):
        text = f"{before.rstrip()}\n{_HOOK.format(indent)}"
        if _with_hooks(before, wanted) is not None and _loaded(text) == _with_hooks(before, wanted):
            return FirstFile(HOOKS, what, text)
    return FirstFile(HOOKS, what, left="its `repos` do not end the file: add the hook of docs/ci.md by hand")


def _with_hooks(before: str, wanted: object) -> object:
    """The configuration with one hook more; None where it is not what pre-commit reads."""
    data = _loaded(before)
    if not isinstance(data, dict) or not isinstance(data.get("repos"), list) or not isinstance(wanted, list):
        return None
    return {**data, "repos": [*data["repos"], *wanted]}


def _job(root: Path, path: str, text: str) -> FirstFile:
    what = "a job in CI"
    before = _text(root / path)
    wanted = text.format(version=__version__)
    if before is None:
        return FirstFile(path, what, wanted)
    if "ddpfix" in before or path == GITHUB:
        return FirstFile(path, what, left="it is there already")
    both = f"{before.rstrip()}\n\n{wanted}"
    data, ours = _loaded(before), _loaded(wanted)
    if isinstance(data, dict) and isinstance(ours, dict) and _loaded(both) == {**data, **ours}:
        return FirstFile(path, what, both)
    return FirstFile(path, what, left="it cannot be read as YAML")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise OSError(f"{path.name} is no UTF-8") from error


def _loaded(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # a GitLab `!reference` among them
        return None
