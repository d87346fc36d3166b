"""The pair at work on a drive it never saw, as a page to look at."""
