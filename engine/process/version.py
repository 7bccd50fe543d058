"""Which version of Tallybook is installed."""

from functools import cache
from importlib import import_module


@cache
def version() -> str:
    """Its number. Imports importlib.metadata, which is large, only now."""
    number: str = import_module("importlib.metadata").version("tallybook")
    return number
