"""The tables and the picture of the documents, made from benchmarks/results: `make figures`."""
