"""What leads each joint: a mode's reference, a move, a trajectory, homing."""
