"""Entry point of the job: becomes the program maxcut-cpp, which does all the rest itself."""

import os
import shutil
import sys
from typing import NoReturn

PROGRAM = "maxcut-cpp"


def main() -> NoReturn:
    """Replaces this process by the program, with the same variables and arguments.

    Raises:
        FileNotFoundError: The image doesn't hold the program.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise FileNotFoundError(f"{PROGRAM} is not in this image: give the job image = 'asset:cpp', which holds it")
    sys.stdout.flush()
    os.execv(program, [program, *sys.argv[1:]])  # noqa: S606 - no shell comes between


if __name__ == "__main__":
    main()
