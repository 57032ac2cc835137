"""The exception for bad input, and its one special kind, used by every room of the house."""


class InputError(ValueError):
    """Bad input, said in one sentence that names the value or file and how to fix it.

    The command line prints the sentence and exits with code 2.
    """


class NoRoom(InputError):
    """Something cannot be written, for lack of room or of the right to; what was kept before is whole."""
