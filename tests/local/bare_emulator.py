"""The emulator without our workarounds: python bare_emulator.py FOLDER. It prints its port."""

import asyncio
import os
import sys
from pathlib import Path

from hybridjobs.local.emulator import Emulator
from hybridjobs.local.environment import aws_environment
from hybridjobs.local.run_folder import RunFolder

folder = RunFolder(Path(sys.argv[1]))
folder.create()
emulator = Emulator(folder)
os.environ.update(aws_environment(emulator.port))
sys.stdout.write(f"{emulator.port}\n")
sys.stdout.flush()
asyncio.run(emulator.serve(asyncio.Event(), with_workarounds=False))
