"""The pages of docs/reference, made from the code they describe: `python -m reference`."""
