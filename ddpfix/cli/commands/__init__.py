"""The commands: every module in here is imported when the program starts, so what a command needs it imports itself."""
