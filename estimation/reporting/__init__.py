"""What all our figures and pages share: colours, style, axes, numbers, and how they are written."""
