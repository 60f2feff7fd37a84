"""What leaves and enters the loop's process: the published samples, and commands with answers."""
