"""Every format is what its readers take: by their schemas, by the validator of others, and by what the fixes in it make."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as XML

import jsonschema
import pytest

from tests.ci.conftest import EXAMPLES, ODD, ROOT
from tests.programs import FIXED

NAMES = [*EXAMPLES, "odd", "clean"]
Answers = Callable[[str], Path]


def schema(name: str) -> Any:
    return json.loads((ROOT / "tests" / "schemas" / name).read_text(encoding="utf-8"))


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_sarif_is_valid_by_its_schema(answers: Answers, name: str) -> None:
    jsonschema.Draft202012Validator(schema("sarif-2.1.0.json")).validate(read(answers(name), "sarif"))


def test_sarif_passes_the_rules_of_microsoft_and_github(answers: Answers, multitool: Path, tmp_path: Path) -> None:
    names = []
    for name in NAMES:
        names.append(str(tmp_path / f"{name}.sarif"))
        (tmp_path / f"{name}.sarif").write_bytes((answers(name) / "sarif").read_bytes())
    command = [str(multitool), "validate", "--rule-kind", "Sarif;Ghas"]
    good = subprocess.run([*command, *names], capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    assert f"{len(NAMES)} files scanned" in good.stdout.replace(". ", " ")
    said = {line.split(": ", 1)[1].split(":")[0] for line in good.stdout.splitlines() if ".sarif(" in line}
    assert said <= {"warning SARIF2005"}, good.stdout  # there is no page of the tool to name

    broken = read(answers("odd"), "sarif")
    broken["runs"][0]["results"][0]["locations"] = []
    (tmp_path / "broken.sarif").write_text(json.dumps(broken))
    bad = subprocess.run([*command, str(tmp_path / "broken.sarif")], capture_output=True, text=True, check=False)
    assert "error" in bad.stdout + bad.stderr


@pytest.mark.parametrize("name", NAMES)
def test_rdjson_is_valid_by_its_schema(answers: Answers, name: str) -> None:
    jsonschema.Draft4Validator(schema("DiagnosticResult.json")).validate(read(answers(name), "rdjson"))


@pytest.mark.parametrize("name", NAMES)
def test_gitlab_gets_unique_fingerprints_and_plain_paths(answers: Answers, name: str) -> None:
    rows = read(answers(name), "gitlab")
    assert len({row["fingerprint"] for row in rows}) == len(rows) == len(read(answers(name), "json")["findings"])
    for row in rows:
        assert set(row) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert row["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert not row["location"]["path"].startswith(("./", "/"))
        assert 1 <= row["location"]["lines"]["begin"] <= row["location"]["lines"]["end"]


# What junit-10.xsd of jenkinsci/xunit-plugin allows: element -> attributes, how many of which are needed, children
JUNIT = {
    "testsuites": (("name", "time", "tests", "failures", "errors"), 0, {"testsuite"}),
    "testsuite": (("name", "tests", "failures", "errors", "time", "skipped", "file"), 4, {"testcase"}),
    "testcase": (("name", "classname", "time"), 1, {"failure", "error", "skipped"}),
    "failure": (("type", "message"), 0, set()),
    "error": (("type", "message"), 0, set()),
    "skipped": (("message",), 0, set()),
}


@pytest.mark.parametrize("name", NAMES)
def test_junit_is_what_gitlab_and_jenkins_read(answers: Answers, name: str) -> None:
    root = XML.fromstring((answers(name) / "junit").read_bytes())
    assert root.tag == "testsuites"
    for element in root.iter():
        allowed, needed, children = JUNIT[element.tag]
        assert set(allowed[:needed]) <= set(element.attrib) <= set(allowed)
        assert {child.tag for child in element} <= children
    cases = list(root.iter("testcase"))
    assert cases, "Jenkins takes a report without a test for a broken one"
    keys = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(keys)) == len(keys)
    findings = read(answers(name), "json")["findings"]
    fixable = [f for f in findings if f["applicability"] != "display"]
    assert int(root.attrib["failures"]) == len(list(root.iter("failure"))) == len(fixable)
    assert int(root.attrib["errors"]) == len(list(root.iter("error")))
    assert int(root.attrib["tests"]) == len(cases)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_tells_the_same_findings(answers: Answers, name: str) -> None:
    folder = answers(name)
    findings = read(folder, "json")["findings"]
    results = read(folder, "sarif")["runs"][0]["results"]
    assert [(f["id"], f["line"]) for f in findings] == [
        (r["partialFingerprints"]["ddpfix/v1"], r["locations"][0]["physicalLocation"]["region"]["startLine"]) for r in results
    ]
    assert [json.loads(line) for line in (folder / "json-lines").read_text(encoding="utf-8").splitlines()] == findings
    assert len((folder / "concise").read_text(encoding="utf-8").splitlines()) == len(findings)
    assert len(read(folder, "rdjson")["diagnostics"]) == len(findings)


# The fixes


def lines(data: str) -> list[str]:
    return io.StringIO(data, newline="").readlines()


def replaced(text: str, region: dict[str, int], new: str) -> str:
    """The text with a region of SARIF replaced: lines and columns from 1, the end exclusive."""
    starts = [0]
    for line in lines(text):
        starts.append(starts[-1] + len(line))
    begin = starts[region["startLine"] - 1] + region["startColumn"] - 1
    end = starts[region["endLine"] - 1] + region["endColumn"] - 1
    return text[:begin] + new + text[end:]


def test_the_fixes_in_sarif_make_what_diff_makes(answers: Answers) -> None:
    run = read(answers("odd"), "sarif")["runs"][0]
    texts = {path: data.decode("latin-1" if path == "lat.py" else "utf-8") for path, data in ODD.items()}
    for result in reversed(run["results"]):  # from below, so that lines above keep their numbers
        (change,) = result["fixes"][0]["artifactChanges"]
        path = os.fsdecode(unquote_to_bytes(change["artifactLocation"]["uri"]))
        for edit in change["replacements"]:
            texts[path] = replaced(texts[path], edit["deletedRegion"], edit["insertedContent"]["text"])
    fixed = FIXED.decode()
    assert texts[os.fsdecode(b"bad\xff.py")] == fixed.rstrip("\n")
    assert texts["lat.py"] == "# -*- coding: latin-1 -*-\n" + fixed.replace("val/loss", "val/löss")
    wide = fixed.replace('        self.log("val/loss"', '        ü = "é𝄞"; self.log("val/loss"')
    assert texts["träin dir/a%b,c:d.py"] == wide.replace("\n", "\r\n")


def test_the_suggestions_of_rdjson_make_what_diff_makes(answers: Answers) -> None:
    rows = [d for d in read(answers("odd"), "rdjson")["diagnostics"] if d["location"]["path"] == "lat.py"]
    text = lines(ODD["lat.py"].decode("latin-1"))
    for row in rows:
        (suggestion,) = row["suggestions"]
        assert suggestion["range"] == row["location"]["range"], "reviewdog drops a suggestion for other lines"
        first, last = suggestion["range"]["start"]["line"], suggestion["range"]["end"]["line"]
        text[first - 1 : last] = [suggestion["text"] + "\n"]
    assert "".join(text) == "# -*- coding: latin-1 -*-\n" + FIXED.decode().replace("val/loss", "val/löss")
