"""Any vision model of vLLM, by its own chat template."""
