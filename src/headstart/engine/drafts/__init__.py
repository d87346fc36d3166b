"""The channel on which drafts come to the scheduler and the front end, and its ends."""
