"""A dry run as a person reviews it: every finding with its own change, reason and evidence, and what was decided over it."""
