"""The bench result as a figure and a page."""
