"""The language of the lab: questions, reference answers in two styles, and facts to check."""
