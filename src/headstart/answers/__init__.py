"""What comes back: the answer, its words before they are certain, where the time went."""
