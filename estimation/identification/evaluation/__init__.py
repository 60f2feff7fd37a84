"""How good a result is: errors, intervals, checks of the data, a verdict."""
