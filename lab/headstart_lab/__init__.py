"""The lab: a drawn world, a language about it, and a pair of small models trained on both."""
