"""A run that breaks off in the middle, for the tests of stopping and going on."""


class Breaking:
    """Batches that know their place, of a machine that goes away after so many of them."""

    def __init__(self, batches, after: int):
        self.batches = batches
        self.left = after
        self.state_dict = batches.state_dict
        self.load_state_dict = batches.load_state_dict

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise ConnectionError("the machine went away")
        self.left -= 1
        return next(self.batches)
