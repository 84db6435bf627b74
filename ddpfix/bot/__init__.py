"""The pull-request bot: it opens the pull request that a maintainer wants, keeps it right, and leaves people's work alone."""
