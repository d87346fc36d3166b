"""The bodies that requests may have: every field with its type and its range.

The check of requests, the schema at ``/openapi.json`` and the generator of the fuzz tests are all
made from these models. A field that no model has is refused.
"""
