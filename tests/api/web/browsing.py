"""What browser tests load into a page."""

from pathlib import Path
from typing import Final

AXE: Final = Path(__file__).parent / "axe-core/axe.min.js"
VIOLATIONS: Final = "axe.run({ resultTypes: ['violations'] }).then((found) => found.violations)"
"""What AXE complains of. It would also describe every element that it has nothing to say about."""
SECONDS: Final = 20_000
"""Milliseconds that something may take to be seen."""
NOTED: Final = """
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) =>
    window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""
