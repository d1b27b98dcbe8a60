"""The command line: one file per verb, one table of verbs (`vrbot.cli.main.VERBS`)."""
