"""Video-LLaVA: the target. One file each for geometry, prompt, processing, weights, model."""
