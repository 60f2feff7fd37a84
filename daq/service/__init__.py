"""What makes the loop and the recorder services of systemd: units, and word of their state."""
