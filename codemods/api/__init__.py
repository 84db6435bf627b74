"""What a codemod is and what it says: findings, evidence, the base class."""
