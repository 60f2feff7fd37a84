"""Physics with a known truth: the bench, a load arm, a MuJoCo arm."""
