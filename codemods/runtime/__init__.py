"""What the catalogue stands on: cheap records and patterns, and room for deep recursion."""
