"""One module per question or group of questions. Its docstring says what is measured, and how.

`NUMBERS` are those of the rows in `benchmarks/table.py` that a module answers.
"""
