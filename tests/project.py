"""Where the project lies, and its packages."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "projections", "api")
