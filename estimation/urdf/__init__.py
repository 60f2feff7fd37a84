"""Robot files from URDFs, and URDFs from robots. Text in, text out: no file is ever opened."""

from estimation.urdf.reading import ConvertedRobot, robot_from_urdf
from estimation.urdf.writing import urdf_text

__all__ = ["ConvertedRobot", "robot_from_urdf", "urdf_text"]
