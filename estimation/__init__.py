"""The laptop: from recordings to friction and dynamic parameters."""
