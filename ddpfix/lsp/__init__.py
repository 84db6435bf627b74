"""The language server: findings while one types, their reasons in the hover, fixes as code actions."""
