"""Task the lab's pair: packing, the loop, what a run leaves behind, and how well it answers."""
