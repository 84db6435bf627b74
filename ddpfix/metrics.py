"""Numbers for Prometheus, in its text format (prometheus.io/docs/instrumenting/exposition_formats), on a port of their own.

The format is a line a number; what is counted lies with those who count it, so there is no registry to keep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """name: with its unit at the end. samples: (labels, value)."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: Sequence[Sample]


def one(name: str, kind: Literal["counter", "gauge"], help: str, value: float) -> Metric:
    """A metric without labels."""
    return Metric(name, kind, help, [({}, value)])


def by(name: str, kind: Literal["counter", "gauge"], help: str, label: str, values: Mapping[str, float]) -> Metric:
    """A metric with a value for each value of one label."""
    return Metric(name, kind, help, [({label: key}, value) for key, value in sorted(values.items())])


def text(metrics: Iterable[Metric]) -> str:
    """The page that Prometheus reads."""
    lines: list[str] = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        lines += [f"{metric.name}{_labels(labels)} {value:g}" for labels, value in metric.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@contextmanager
def served(address: str, collect: Callable[[], Iterable[Metric]]) -> Iterator[str]:
    """Answer GET /metrics at HOST:PORT for a while; the address of it. Raises ValueError, OSError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise ValueError(f"{address!r} is no address: write it as HOST:PORT, such as 127.0.0.1:9184")

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def log_message(self, format: str, *arguments: object) -> None:
            """Whoever asks every few seconds fills no log."""

        def do_GET(self) -> None:
            known = self.path.partition("?")[0] == "/metrics"
            body = text(collect()).encode() if known else b"ask for /metrics\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", TYPE if known else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
    threading.Thread(target=server.serve_forever, name="ddpfix-metrics", daemon=True).start()
    try:
        yield f"http://{host}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
