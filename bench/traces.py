"""Sequences of allocations and releases, for fragmentation.py: lists of (number, bytes); 0 bytes releases that number."""

import random

KIB, MIB = 1 << 10, 1 << 20
SMALLEST, LARGEST = 512, 64 * MIB


def random_trace(seed, live=1000, steps=12_000):
    """Sizes of 512 B to 64 MiB, evenly distributed by their logarithm; any live block may be released next."""
    draw, blocks, trace = random.Random(seed), [], []
    for number in range(steps):
        grows = len(blocks) < live // 2 or (len(blocks) < live and draw.random() < 0.5)
        if grows:
            nbytes = round(SMALLEST * (LARGEST / SMALLEST) ** draw.random())
            trace.append((number, nbytes))
            blocks.append(number)
        else:
            at = draw.randrange(len(blocks))
            blocks[at], blocks[-1] = blocks[-1], blocks[at]
            trace.append((blocks.pop(), 0))
    return trace


class _Recorder:
    """Records what a program would allocate and release."""

    def __init__(self):
        self.trace, self.count = [], 0

    def alloc(self, nbytes):
        self.count += 1
        self.trace.append((self.count, int(nbytes)))
        return self.count

    def free(self, *numbers):
        self.trace += [(number, 0) for number in numbers]


def training_trace(seed, steps=40, layers=12, width=1024):
    """A training loop of a transformer with batches and sequences of varying length: parameters and the optimizer's state stay;
    activations live from the forward pass to the backward pass, gradients to the end of the step, workspaces for one call."""
    draw, recorder = random.Random(seed), _Recorder()
    weights = [4 * width * width, 4 * 3 * width * width, 16 * width * width, 16 * width * width, 4 * width, 16 * width]
    for nbytes in weights * layers * 3:
        recorder.alloc(nbytes)
    for _ in range(steps):
        _training_step(recorder, weights, layers, draw.randrange(4, 33), draw.randrange(32, 257), width)
    return recorder.trace


def _training_step(recorder, weights, layers, batch, length, width):
    tokens, alloc, free = batch * length, recorder.alloc, recorder.free
    kept, gradients = [], []
    inputs = alloc(8 * tokens)
    for _ in range(layers):
        kept.append([alloc(2 * tokens * width), alloc(6 * tokens * width), alloc(2 * 16 * batch * length * length),
                     alloc(4 * tokens), alloc(8 * tokens * width)])
        free(alloc(8 * tokens * width), alloc(256 * KIB))
    logits = alloc(4 * tokens * 8000)
    for activations in reversed(kept):
        incoming, workspace = alloc(8 * tokens * width), alloc(8 * MIB)
        gradients += [alloc(nbytes) for nbytes in weights]
        free(*activations, workspace, incoming)
    free(logits, inputs)
    for gradient in gradients:
        free(alloc(4 * MIB), gradient)


TRACES = {"random, 512 B to 64 MiB": random_trace, "training, varying batches": training_trace}
