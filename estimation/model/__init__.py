"""The arm as a linear regression: parameters, regressor, base parameters, simulation."""
