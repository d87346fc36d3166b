"""Where the parts meet: one target engine, and later the drafters beside it.

The only layer besides models that imports vLLM.
"""
