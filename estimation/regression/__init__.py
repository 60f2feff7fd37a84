"""Linear regression and how sure of its result one may be."""
