"""What several tests need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

SDK = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(SDK / "src"), str(SDK)]


def describe(files: dict[str, str], module: str = "app") -> dict[str, Any]:
    """What `python -m tenon.describe` says of a folder with these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(textwrap.dedent(text).lstrip("\n"))
        environment = {**os.environ, "PYTHONPATH": str(SDK / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-S", "-m", "tenon.describe", module],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        if not done.stdout:
            raise AssertionError(done.stderr)
        description = json.loads(done.stdout)
        assert done.returncode == bool(description["problems"]), done.stderr
        return description
