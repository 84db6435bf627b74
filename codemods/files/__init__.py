"""Reading one file: Python, shell, YAML, JSON, notebooks."""
