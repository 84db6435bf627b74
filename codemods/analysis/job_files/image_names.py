"""Which torch the images that a repository names hold: by the tag of a PyTorch image, or by the month of one of NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.frameworks import is_run
from codemods.analysis.torch_companions import torch_of_container
from codemods.analysis.version_pins import Range, padded, parse_version
from codemods.files.text_file import DOCUMENT_KINDS, IMAGE_KINDS, SHELL_KINDS, YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# `pytorch/pytorch:1.9.0-cuda11.1-cudnn8-runtime`, and a name of the user's own that takes the tag over
_TAG = lazy(
    r"(?<![\w./-])(?:[\w.-]+/)*pytorch:(?P<tag>[12]\.\d{1,2}(?:\.\d)?)(?![\w.])|"
    r"(?<![\d.])(?P<own>[12]\.\d{1,2}\.\d)-cuda\d\d?\.\d-cudnn\d"
)
# `nvcr.io/nvidia/pytorch:21.08-py3`, `site/pytorch:ngc-21.08-v2`, `nvidia+pytorch+21.08-py3.sqsh`
_MONTH = lazy(r"pytorch[:_+-](?:ngc-)?(?P<year>19|2[0-9])\.(?P<month>0[1-9]|1[0-2])(?![\d.])")
_WORDS = (b"pytorch:", b"-cudnn", b"nvidia+pytorch")
_KINDS = (".py", ".txt", ".rst", ".def", *DOCUMENT_KINDS, *IMAGE_KINDS, *SHELL_KINDS, *YAML_KINDS)
_LONGEST = 400_000


@record
class NamedImage:
    """The versions that an image may hold, and where it is named."""

    range: Range
    path: str
    line: int


def named_images(project: Project) -> tuple[NamedImage, ...]:
    return project.keep("images with a torch", lambda: tuple(_named(project)))


def _named(project: Project) -> Iterator[NamedImage]:
    for path in sorted({p for word in _WORDS for p in project.files_containing(word, kinds=_KINDS)}):
        data = project.read(path) or b""
        if not is_run(path) or len(data) > _LONGEST:
            continue
        text = data.decode("utf-8", "replace")
        for found in _TAG.finditer(text):
            version = parse_version(found["tag"] or found["own"])
            above = padded((*version[:-1], version[-1] + 1))
            yield NamedImage((padded(version), above), path, text.count("\n", 0, found.start()) + 1)
        for found in _MONTH.finditer(text):
            torch = torch_of_container(int(found["year"]), int(found["month"]))
            if torch is not None:
                yield NamedImage(torch, path, text.count("\n", 0, found.start()) + 1)
