"""How good a result is: errors, checks of the data, a verdict."""
