"""Fits learned drafters to what was collected, and holds the loop that the lab's pair uses too."""
