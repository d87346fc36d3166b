"""Events beside the frames of a live source."""
