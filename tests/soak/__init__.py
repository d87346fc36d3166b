"""Programs of hours that show a promise: fuzzes, kills, abuse, whole grids. Pytest collects none.

Run by hand, and some by `make nightly`: `python -m tests.soak.promise`. Tests run slices of them.
Each says what it looks for, and fails if it finds it.
"""
