"""JUnit XML, as GitLab and Jenkins read it: a suite for each file, a test for each finding.

A finding that makes the check fail is a failure, one that is only told is skipped. Without findings there is one test that
passes, since a report without a test counts as broken in Jenkins. A test has no attribute that the schema of
jenkinsci/xunit-plugin (junit-10.xsd) does not know.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as XML

from codemods.api.findings import Finding
from ddpfix.escaping import harmless
from ddpfix.outputs.answer import Answer, Checked, plain, story
from ddpfix.outputs.text import flat

# What XML 1.0 cannot hold, not even escaped (https://www.w3.org/TR/xml/#charsets).
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(answer: Answer) -> str:
    files: dict[str, list[tuple[Checked, Finding]]] = {}
    for project, finding in answer.rows():
        files.setdefault(answer.home(project, finding.path), []).append((project, finding))
    root = XML.Element("testsuites", name="ddpfix")
    for path, rows in files.items():
        suite = XML.SubElement(root, "testsuite", name=_text(path), file=_text(path))
        names: dict[str, int] = {}
        for _, finding in rows:
            name = f"{finding.code} {finding.name} in {finding.symbol or 'the file'}"
            names[name] = names.get(name, 0) + 1
            name += f" ({names[name]})" if names[name] > 1 else ""
            _case(suite, path, name, finding, failing=answer.fails(finding))
    for path, error, left_alone in _unread(answer):
        suite = XML.SubElement(root, "testsuite", name=_text(path), file=_text(path))
        case = XML.SubElement(suite, "testcase", name="read", classname=_class(path), time="0")
        XML.SubElement(case, "skipped" if left_alone else "error", message=_text(f"not read: {error}"))
    if not len(root):
        XML.SubElement(XML.SubElement(root, "testsuite", name="ddpfix"), "testcase", name="check", classname="ddpfix", time="0")
    for suite in root:
        _count(suite)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(p.report.elapsed for p in answer.projects):.3f}")
    XML.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + XML.tostring(root, encoding="unicode") + "\n"


def _case(suite: XML.Element, path: str, name: str, finding: Finding, *, failing: bool) -> None:
    """A test keeps its name when lines move, so that a forge does not take an old failure for a new one."""
    place = f"{path}:{finding.where}:{finding.span.column + 1}"
    case = XML.SubElement(suite, "testcase", name=_text(name), classname=_class(path), time="0")
    message = _text(flat(story(finding)))
    if failing:
        XML.SubElement(case, "failure", message=message, type=finding.code).text = f"{_text(place)}: {message}"
    else:
        XML.SubElement(case, "skipped", message=message)


def _unread(answer: Answer) -> list[tuple[str, str, bool]]:
    return [(answer.home(p, f.path), f.error, f.left_alone) for p in answer.projects for f in p.report.failed]


def _count(suite: XML.Element) -> None:
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("time", "0")


def _class(path: str) -> str:
    """Jenkins groups by the dots of a class name."""
    return _text(path.removesuffix(".py").replace("/", "."))


def _text(text: str) -> str:
    return _IMPOSSIBLE.sub("\ufffd", harmless(plain(text)))
