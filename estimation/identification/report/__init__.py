"""The report of an identification: figures, an HTML page, and the cells of the comparison."""
