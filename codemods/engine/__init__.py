"""Files and codemods to findings, and rounds of fixes."""
