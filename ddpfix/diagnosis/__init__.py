"""From what a run left behind to what is wrong: logs read against a table of messages."""
