"""The computer that all of this runs on: real time, directories, locks."""
