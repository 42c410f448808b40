"""The one exception that a user's mistake raises, in every layer.

The command line turns it into one sentence on standard error and exit code 2; a library user
catches it as a `ValueError`.
"""

from __future__ import annotations


class InvalidInput(ValueError):
    """The caller gave something that cannot work.

    The message is one sentence that says what was given, what is allowed and what to do.

    >>> raise InvalidInput("facts is 1; it must be an integer >= 2; give --facts 2 or more")
    Traceback (most recent call last):
        ...
    replica.errors.InvalidInput: facts is 1; it must be an integer >= 2; give --facts 2 or more
    """
