"""The media that requests name: fetched, decoded in the sandbox, and handed to vLLM."""
