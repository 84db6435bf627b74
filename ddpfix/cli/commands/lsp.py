"""`ddpfix lsp`."""

from __future__ import annotations

from ddpfix.cli.app import app
from ddpfix.cli.ends import CommandError


@app.command("lsp")
def lsp() -> None:
    """Speak the language server protocol on stdin and stdout: findings and fixes in an editor."""
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise CommandError("the language server needs pygls", todo="Install it with `pip install 'ddpfix[lsp]'`.")
    from ddpfix.lsp.server import serve

    serve()
