"""Report -> text. One module a format; each is a pure function."""
