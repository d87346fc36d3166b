"""The ranker: a drafter that learns from each tenant's answers while it runs."""
