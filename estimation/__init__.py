"""The laptop: from recordings to friction and dynamic parameters. Nothing of it is built yet."""
