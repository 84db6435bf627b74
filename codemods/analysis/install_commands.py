"""The versions that commands and texts name: `pip install torch==2.1` in scripts, images, CI files and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename
from urllib.parse import unquote

from codemods.analysis.requirement_files import CONDA_NAMES, normalized, reader_of, requirement
from codemods.analysis.version_pins import Pin
from codemods.files.text_file import IMAGE_KINDS, SHELL_KINDS, YAML_KINDS
from codemods.runtime.lazy_pattern import lazy

# What fetches packages names the versions that the code runs with, as what installs them does
_COMMAND = lazy(
    r"\b(?:(?:pip3?(?:\.\d+)?|conda|(?:micro)?mamba|uv(?:\s+pip)?|poetry|pipenv|pdm|pixi)\s+(?:-\S+\s+)*"
    r"(?:install|download|wheel|create|add)|uvx?\s+(?:run\s+)?(?:-\S+\s+)*?--with)\s+"
)
_ENDS = lazy(r"\s(?:&&|\|\|?|;)(?:\s|$)")
# `git+https://github.com/owner/name@v1.4.9`, `dist/name-1.4.9-py3-none-any.whl`
_TAGGED = lazy(r"git\+\w+://\S*/([A-Za-z][\w.-]*?)(?:\.git)?@v?(\d+\.\d+(?:\.\d+)?)")
_WHEEL = lazy(r"(?:\S*/)?([A-Za-z]\w*(?:\.\w+)*)-(\d+\.\d[\w.+]*)-[\w.]+-[\w.]+-[\w.]+\.whl")
_LISTED = lazy(r"^\s*(?:[-*+]\s+)?`?([A-Za-z][\w.-]*\s*==\s*\d[\w.]*)`?\s*$")
# A line of a text that is a requirement as a whole, also a quoted one: `> transformers <= 4.45.0`
_BOUND = r"(?:[=~]=|[<>]=?|!=)\s*\d+(?:\.[\w*]+)*"
_REQUIRED = lazy(
    rf"^\s*(?:>\s*)?(?:[-*+]\s+)?[`*]*([A-Za-z][\w.-]*\s*{_BOUND}(?:\s*,\s*{_BOUND})*)[`*]*\s*(?:<br\s*/?>|,)?\s*$"
)
# `- pytorch-lightning=1.3.1`, and under words that say what is needed `* PyTorch Lightning 1.3.1` as well
_NAMED = lazy(r"^\s*[-*+]\s+[`*]*([A-Za-z][\w.-]*(?: [A-Za-z][\w.-]*)?)[`*]*(\s*=\s*|\s+v?)[`*]*(\d+\.\d[\d.]*)[`*]*\s*$")
_NEEDED = lazy(r"(?i)\b(?:prerequisite|requirement|require|dependenc|install|environment|tested|set-?up)")
# `(tested with pytorch_lightning==1.3.8 and torchmetrics==0.5)`, `we use torch==1.9.0`
_SAID = lazy(r"(?i)\b(?:tested|developed|verified|trained|built|runs?|ran|requires?|uses?|works?)\b(?P<list>[^.;\n][^;\n]*)")
_SAID_ONE = lazy(
    r"(?<![\w./=-])([A-Za-z][\w.-]*[ \t]*(?:==|<=?)[ \t]*\d+\.\d+(?:\.\d+)*)(?![\w*.]\w*)"
    r"(?![ \t`'\")]*(?:\+|(?i:or|and)\s+(?i:above|higher|newer|later|up|greater|below|older)))"
)
_DOUBTED = lazy(
    r"(?i)\b(?:not|cannot|never|without|un(?:tested|supported)|fail\w*|break\w*|broken|error|issue|bug|instead|except|older|newer|"
    r"previous(?:ly)?|upgrad\w*|downgrad\w*)\b|n't\b"
)
_COMMENT = lazy(r"(?:^|\s)#.*$")
INSTALL_KINDS = (*SHELL_KINDS, *IMAGE_KINDS)  # whose commands install what the code runs with
COMMAND_KINDS = (*INSTALL_KINDS, *YAML_KINDS)
_OF_INSTALLING = ("install", "setup", "env", "conda", "requirement", "dependenc", "dockerfile")
_PAGES = (".md", ".rst", ".txt")
# `environment.md`, `docs/en/get_started.md`
_PAGE_OF_INSTALLING = lazy(
    r"(?:readme|install)|(?:.*[-_ .])?(?:env|envs|environments?|conda|setup|requirements?|dependenc(?:y|ies)|prerequisites?|"
    r"get(?:ting)?[-_ ]?started|quick[-_ ]?start)[-_ .]"
)
_QUOTES = "`'\"\\"


def documents(path: str) -> bool:
    """True for a text that says how to install the repository."""
    name = basename(path).lower()
    return name.endswith(_PAGES) and _PAGE_OF_INSTALLING.match(name) is not None and reader_of(path) is None


def installs(path: str) -> bool:
    """True for a script or an image that is named after what it does: install what the repository needs."""
    name = basename(path)
    return name.endswith(INSTALL_KINDS) and any(word in name.lower() for word in _OF_INSTALLING)


def commands(path: str) -> bool:
    """True for a file whose commands a shell runs: a script, an image, the steps of a YAML file that lists no packages itself."""
    return path.endswith(COMMAND_KINDS) and reader_of(path) is None


def is_command(line: str) -> bool:
    """True for a line that fetches packages, `conda create -n env pytorch==1.9.0`, or speaks of installing them."""
    return _COMMAND.search(line) is not None or "install" in line


def documented_pins(path: str, data: bytes) -> Iterator[Pin]:
    """The versions that the commands of a text or a script name, `conda install pytorch==2.0.1 -c pytorch`, and a text's
    lists: `* torch==1.7.0`, `- torch=1.7`, `- PyTorch 1.7` below "Requirements", "(tested with torch==1.7.0)"; also a line
    that is a requirement, `> transformers <= 4.45.0`.
    """
    goes_on, heading = False, ""
    is_run, is_steps = path.endswith(COMMAND_KINDS), path.endswith(YAML_KINDS)
    for number, written in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = _COMMENT.sub("", written) if is_run else written
        listed = None if is_steps else (_LISTED if is_run else _REQUIRED).match(line)
        named = requirement(listed[1], path, number) if listed is not None else None
        if named is not None and named.below is not None:  # "at least" leaves open what it was run with
            yield _called(named)
            continue
        is_item = not is_run and re.match(r"\s*[-*+]\s", line) is not None
        if re.match(r"#*\s*[A-Za-z*_]", line) is not None and not is_item and not line[:1].isspace():
            heading = line
        if is_item and (pin := _of_list(line, path, number, needed=_NEEDED.search(heading) is not None)):
            yield pin
            continue
        if not (is_run or goes_on) and _COMMAND.search(line) is None and (said := list(_said(line, path, number))):
            yield from said
            continue
        packages, goes_on = _asked_for(line, goes_on=goes_on)
        for word in packages:
            pin = _of_word(word, path, number)
            if pin is not None and re.search(r"\d", pin.spec):
                yield _called(pin)


def is_exact(pin: Pin) -> bool:
    """True where the pin leaves one release of the package."""
    return pin.minimum is not None and pin.below is not None and re.match(r"={1,3}[^=]", pin.spec) is not None


def _asked_for(line: str, *, goes_on: bool) -> tuple[list[str], bool]:
    """The words behind the commands of a line, and whether the last command goes on in the next line."""
    words: list[str] = []
    for number, part in enumerate(_ENDS.split(line)):
        command = _COMMAND.search(part)
        goes_on = command is not None or (goes_on and number == 0)
        words += part[command.end() if command is not None else 0 :].split() if goes_on else []
    return words, goes_on and line.rstrip().endswith("\\")


def _of_word(word: str, path: str, line: int) -> Pin | None:
    bare = word.strip(_QUOTES)
    if (found := _TAGGED.match(bare) or _WHEEL.fullmatch(unquote(bare))) is not None:
        return Pin(normalized(found[1]), f"=={found[2]}", path, line)
    return requirement(bare, path, line) or _of_conda(bare, path, line)


def _called(pin: Pin) -> Pin:
    """The pin under pip's name of the package."""
    return Pin(CONDA_NAMES.get(pin.package, pin.package), pin.spec, pin.path, pin.line)


def _of_list(line: str, path: str, number: int, *, needed: bool) -> Pin | None:
    """The pin of an item that names one version. Behind a blank alone it counts only in a list of what is needed."""
    found = _NAMED.match(line)
    if found is None or not (needed or "=" in found[2]):
        return None
    name = normalized(found[1].replace(" ", "-"))
    return Pin(CONDA_NAMES.get(name, name), f"={found[3].rstrip('.')}", path, number)


def _said(line: str, path: str, number: int) -> Iterator[Pin]:
    """The exact versions, and those up to one, that a sentence says the code was tested, or is run, with."""
    said = _SAID.search(line)
    if said is None or _DOUBTED.search(line) is not None:
        return
    for one in _SAID_ONE.finditer(said["list"]):
        if (pin := requirement(one[1], path, number)) is not None:
            yield _called(pin)


def _of_conda(word: str, path: str, line: int) -> Pin | None:
    """`pytorch=1.12`: one sign of equality."""
    found = re.fullmatch(r"([A-Za-z][\w.-]*)=(\d[\w.]*)(?:=.*)?", word)
    return Pin(normalized(found[1]), f"={found[2]}", path, line) if found is not None else None
