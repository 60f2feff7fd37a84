"""What the robot file says of torques: gravity, inertia and friction of the arm. Pure."""
