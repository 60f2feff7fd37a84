"""Every method, and the problem that they all solve."""
