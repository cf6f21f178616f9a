"""Draw docs/static/top.svg: `gpuglue top` on all simulated vendors side by side, as a terminal shows it.

    python docs/diagrams/top.py build/plain          (a build whose tests and package are installed; needs tmux and rich)
    python docs/diagrams/top.py --capture FILE PICTURE      draws what `tmux capture-pane -e -p` has written on another machine

tmux runs the command in a terminal of its own, and rich draws what it has captured."""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/static/top.svg"
COLUMNS, LINES = 120, 15


def environment(build):
    sims = build / "tests/sim"
    return {
        "PYTHONPATH": build / "root/site",
        "GPUGLUE_BACKEND": "auto",
        "GPUGLUE_SIM_MONITOR": "1",
        "GPUGLUE_CUDA_LIBRARY": sims / "cuda/libcuda.so.1",
        "GPUGLUE_NVML_LIBRARY": sims / "monitor/libnvidia-ml.so.1",
        "GPUGLUE_HIP_LIBRARY": sims / "hip7/libamdhip64.so.7",
        "GPUGLUE_AMD_SMI_LIBRARY": sims / "monitor/libamd_smi.so.27",
        "ZE_ENABLE_ALT_DRIVERS": sims / "ze_new/libze_sim_new.so.1",
        "GPUGLUE_ZES_LIBRARY": sims / "monitor/libzes.so.1",
    }


def captured(build):
    """The terminal's lines with their colours, once the table is complete."""
    with tempfile.TemporaryDirectory() as directory:
        tmux = ["tmux", "-f", os.devnull, "-S", f"{directory}/socket"]
        variables = [f"{name}={value}" for name, value in environment(build).items()]
        command = shlex.join(["env", *variables, sys.executable, "-P", "-m", "gpuglue", "top"])
        subprocess.run([*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), command], check=True)
        try:
            for _ in range(600):
                text = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True).stdout
                if re.search("host:0.*%.*└", text, re.S):  # loads are known from the second reading on
                    return text.rstrip()
                time.sleep(0.1)
            raise SystemExit(f"the table did not appear:\n{text}")
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)


def drawn(text):
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text), end="")
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.S)  # fonts from another site
    return console.export_svg(title="gpuglue top", code_format=form, unique_id="top")


def main():
    if sys.argv[1:2] == ["--capture"]:
        text, picture = Path(sys.argv[2]).read_text(encoding="utf-8").rstrip(), Path(sys.argv[3])
    else:
        text, picture = captured(Path(sys.argv[1] if len(sys.argv) > 1 else "build/plain").resolve()), PICTURE
    picture.write_text(drawn(text), encoding="utf-8")
    print(f"{picture}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
