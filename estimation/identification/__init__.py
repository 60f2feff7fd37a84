"""From prepared recordings to parameters: reduction, estimators, uncertainty, judgement."""
