"""The bench: how one joint is driven to measure its friction; how well boards are reached."""
