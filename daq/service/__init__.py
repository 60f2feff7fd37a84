"""The loop and the recorder as services of systemd: units, and messages about their state."""
