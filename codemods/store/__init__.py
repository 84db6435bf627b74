"""The repository, what it answers, and what each answer rests on."""
