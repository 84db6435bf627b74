"""What a parent and the processes that it spawns know of each other: each has a memory of its own."""
