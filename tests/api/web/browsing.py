"""What browser tests load into a page."""

from pathlib import Path
from typing import Final

AXE: Final = Path(__file__).parent / "axe-core/axe.min.js"
VIOLATIONS: Final = "axe.run({ resultTypes: ['violations'] }).then((found) => found.violations)"
"""What AXE complains of. It would also describe every element that it has nothing to say about."""
SECONDS: Final = 60_000
"""Milliseconds that something may take to be seen."""
NOTED: Final = """
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) =>
    window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""
REORDERED: Final = """() => {
  const reordered = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let last = null;
  for (let text; (text = texts.nextNode()); ) {
    let block = text.parentElement;
    if (block.closest(".unseen, option, svg") || !block.checkVisibility()) continue;
    while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
    for (const { 0: word, index } of text.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const { left, top } = range.getBoundingClientRect();
      const follows = last?.block === block && Math.abs(last.top - top) < 8;
      if (follows && left < last.left) reordered.add(`${last.word} ${word}`);
      last = { block, left, top, word };
    }
  }
  return [...reordered];
}"""
"""Neighbouring words of one line that stand in another order than in the page. Each name must be a single word."""
