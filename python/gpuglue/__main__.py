"""python -m gpuglue: the same as the command gpuglue."""

from gpuglue._command import run

if __name__ == "__main__":
    run()
