"""An event model beside a target: it drafts the target's answers from what it sees itself."""
