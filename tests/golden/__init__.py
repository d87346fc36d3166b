"""What earlier code wrote, kept as it was: bytes, decisions, names. Code of today must read it.

Each kept thing has a module that writes it and a test that reads it. A change that is meant is
written anew, `python -m tests.golden.decisions` for example, and its difference is looked at.
"""
