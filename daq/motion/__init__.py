"""Motion that is pure computation: moves, trajectories, their limits, and homing. No boards."""
