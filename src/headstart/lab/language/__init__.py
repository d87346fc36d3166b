"""What is said about the world: questions, answers in two houses of style, and checkable facts."""
