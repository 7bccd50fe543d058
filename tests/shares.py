"""Tests of which `make test` runs a share."""

import pytest


def every(number: int) -> pytest.MarkDecorator:
    """For a test that looks at `things[::step]`: at every `number`-th of them in `make test`, at all in `make long`."""
    return pytest.mark.parametrize("step", [number, pytest.param(1, marks=pytest.mark.long)])
