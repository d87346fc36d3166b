"""What is measured of the lab itself: how hard its drives are, and what the pair gets right."""
