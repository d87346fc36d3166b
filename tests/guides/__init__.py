"""The guides, walked through block by block as a reader does."""
