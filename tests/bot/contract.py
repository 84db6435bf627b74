"""Requests held against GitHub's own description of its interface (github_slice.json, made by github_slice.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from openapi_schema_validator import OAS30WriteValidator

SLICE = Path(__file__).with_name("github_slice.json")


class Refused(Exception):
    """An answer of the forge that is no success."""

    def __init__(self, status: int, message: str, errors: Any = (), headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.errors, self.headers = status, message, list(errors), dict(headers or {})


class Contract:
    """Which operation a request is for, and whether its query and its body are what that operation takes."""

    def __init__(self) -> None:
        self._operations = []
        for template, verbs in json.loads(SLICE.read_text(encoding="utf-8"))["paths"].items():
            for verb, operation in verbs.items():
                deep = {p["name"] for p in operation["parameters"] if p.get("x-multi-segment")}
                self._operations.append((verb.upper(), template, _pattern(template, deep), operation))

    def check(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> tuple[str, dict[str, str]]:
        """(template, values in the path). Raises Refused."""
        for own, template, pattern, operation in self._operations:
            if own == verb and (match := pattern.fullmatch(path)):
                if errors := [*_query_errors(operation, query), *_body_errors(operation, body)]:
                    raise Refused(422, "Validation Failed (OpenAPI)", errors)
                return template, {name: unquote(value) for name, value in match.groupdict().items()}
        raise Refused(404, f"{verb} {path} is not among the requests that the bot may send")


def _pattern(template: str, deep: set[str]) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", lambda m: f"(?P<{m[1]}>{'.+' if m[1] in deep else '[^/]+'})", template))


def _query_errors(operation: Any, query: Mapping[str, str]) -> list[str]:
    known = {p["name"]: p["schema"] for p in operation["parameters"] if p["in"] == "query"}
    errors = []
    for name, value in query.items():
        readings = [value, *([int(value)] if value.isdigit() else [])]
        if name not in known:
            errors.append(f"{name}: no such parameter")
        elif not any(OAS30WriteValidator(known[name]).is_valid(reading) for reading in readings):
            errors.append(f"{name}: {value!r} is not allowed")
    return errors


def _body_errors(operation: Any, body: Any) -> list[str]:
    if "requestBody" not in operation:
        return ["no body is taken"] if body else []
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    errors = [e.message[:200] for e in OAS30WriteValidator(schema).iter_errors({} if body is None else body)]
    if isinstance(body, dict) and "properties" in schema:
        errors += [f"{name}: no such field" for name in body if name not in schema["properties"]]
    return errors
