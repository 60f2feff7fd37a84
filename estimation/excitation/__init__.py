"""Motion that makes an arm's parameters visible, inside all of its limits."""
