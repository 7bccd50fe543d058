"""One module per question or group of questions; what is measured and how stands in its docstring.

`NUMBERS` are those of the rows in `benchmarks/table.py` that a module answers.
"""
