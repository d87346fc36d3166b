"""A collection's progress that only counts."""


class Silent:
    def __init__(self):
        self.expected, self.done = 0, 0

    def expect(self, num_records):
        self.expected = num_records

    def advance(self, num_records):
        self.done += num_records
