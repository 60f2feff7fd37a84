"""How well boards and computer talk with each other, at the loop's rate and without any motor."""
