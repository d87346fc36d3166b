"""The lab: small models of the same classes as the 7B pair, made by our own code.

Everything here runs on a laptop without a download.
"""
