"""What tests, soak programs and benchmarks share: real servers, cameras, footage, brokers, clocks.

Run from the checkout, as `tests` and `benchmarks` are; no distribution holds it. It imports the lab
and headstart, and no test and no benchmark (`tests/test_architecture.py`).
"""
