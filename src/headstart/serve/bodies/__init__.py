"""What the bodies of requests may say: every field, its type, its range.

The check of a request, the schema at ``/openapi.json`` and the fuzz's generator are all made from
these models. What no model names is refused.
"""
