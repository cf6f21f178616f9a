"""What the parts of comm.py share: results, and communicators of their ranks."""

import os

RESULTS = {}


def say(*words):
    if int(os.environ.get("RANK", 0)) == 0:
        print(*words, flush=True)


def keep(name, value):
    RESULTS[name] = value
    say(f"  {name}: {value}")


def communicator(port, **options):
    import gpuglue as gg

    rank = int(os.environ["RANK"])
    options.setdefault("device", f"{os.environ.get('BENCH_BACKEND', 'cuda')}:{rank}")
    options.setdefault("timeout", 60)
    return gg.Communicator(rank, int(os.environ["WORLD_SIZE"]), f"127.0.0.1:{int(os.environ['BENCH_PORT']) + port}", **options)
