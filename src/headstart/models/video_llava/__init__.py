"""Video-LLaVA: geometry, prompt, processing, weights, model and view."""
