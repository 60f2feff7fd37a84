"""What each joint follows: a mode's reference, a move, a trajectory, homing."""
