"""The one exception for bad input, used by every room of the house."""


class InputError(ValueError):
    """Bad input, said in one sentence that names the value or file and how to fix it.

    The command line prints the sentence and exits with code 2.
    """
