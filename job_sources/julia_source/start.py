"""Entry point of the job: becomes Julia running qaoa.jl, which does all the rest itself."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

PROGRAM = Path(__file__).with_name("qaoa.jl")


def main() -> NoReturn:
    """Replaces this process by Julia, with the same variables and arguments.

    Raises:
        FileNotFoundError: The image doesn't hold Julia.
    """
    julia = shutil.which("julia")
    if julia is None:
        raise FileNotFoundError("julia is not in this image: give the job image = 'asset:julia', which holds it")
    sys.stdout.flush()
    os.execv(julia, [julia, "--startup-file=no", str(PROGRAM), *sys.argv[1:]])  # noqa: S606 - no shell comes between


if __name__ == "__main__":
    main()
