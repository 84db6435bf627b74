"""Edits to new text, byte for byte outside them."""
