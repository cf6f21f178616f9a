"""make_images.py OUT: images of the test kernels in the formats whose compilers the build does not ask for.

A code object with its metadata note, and SPIR-V. They hold names and signatures and no code: simulated
drivers take them, and have functions that stand for the kernels. What a kernel is, kernels.cu says.
"""

import base64
import gzip
import struct
import sys
from pathlib import Path

P, I8, U16, I32, U32, I64, U64, F32, F64, MIXED = (
    ("global_buffer", 8), ("char", 1), ("ushort", 2), ("int", 4), ("uint", 4), ("long", 8), ("ulong", 8),
    ("float", 4), ("double", 8), ("struct mixed", 16))
KERNELS = {
    "nothing": [], "write_word": [P, U64], "scale": [P, U32, F32], "add_table": [P, U32], "reverse": [P],
    "say": [P, I8, U16, I32, I64, F32, F64, MIXED], "wait_for": [P]}
VARIABLES = {"table": 16}


def pack(value):
    """MessagePack of what a note holds."""
    if isinstance(value, dict):
        return struct.pack(">BH", 0xDE, len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(pack, value))
    if isinstance(value, str):
        return struct.pack(">BB", 0xD9, len(value)) + value.encode()
    return bytes([value]) if value < 128 else struct.pack(">BI", 0xCE, value)


def arguments(signature):
    offset = 0
    for name, size in signature:
        offset += -offset % min(size, 8)
        kind = "global_buffer" if name == "global_buffer" else "by_value"
        yield {".offset": offset, ".size": size, ".value_kind": kind, ".type_name": name}
        offset += size
    yield {".offset": offset + -offset % 8, ".size": 8, ".value_kind": "hidden_global_offset_x"}


def metadata(target):
    return pack({
        "amdhsa.kernels": [{".args": list(arguments(s)), ".name": n, ".symbol": n + ".kd"} for n, s in KERNELS.items()],
        "amdhsa.target": "amdgcn-amd-amdhsa--" + target, "amdhsa.version": [1, 1]})


def code_object(target):
    """An ELF file of the machine with the note, and a table of the names that are in it."""
    note = metadata(target)
    note = struct.pack("<III8s", 7, len(note), 32, b"AMDGPU\0\0") + note + bytes(-len(note) % 4)
    names = b"\0" + b"".join(n.encode() + b".kd\0" for n in KERNELS) + b"".join(n.encode() + b"\0" for n in VARIABLES)
    section_names = b"\0.note\0.dynstr\0.shstrtab\0"
    bodies = [(1, 7, note), (7, 3, names), (15, 3, section_names)]
    offset, headers, data = 64, [bytes(64)], b""
    for name, kind, body in bodies:
        headers.append(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset + len(data), len(body), 0, 0, 4, 0))
        data += body + bytes(-len(body) % 8)
    ident = b"\x7fELF" + bytes([2, 1, 1, 64, 3]) + bytes(7)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, 224, 1, 0, 0, 64 + len(data), 0x54C, 64, 0, 0, 64, 4, 3)
    return header + data + b"".join(headers)


def bundle(targets):
    """A bundle as the compiler makes it: an empty entry for the host, then one for each target."""
    entries = [("host-x86_64-unknown-linux--", b"")]
    entries += [("hipv4-amdgcn-amd-amdhsa--" + t, code_object(t)) for t in targets]
    size = 32 + sum(24 + len(name) for name, _ in entries)
    table, data = b"", b""
    for name, body in entries:
        table += struct.pack("<QQQ", 4096 + len(data), len(body), len(name)) + name.encode()
        data += body
    assert size <= 4096
    return (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + table).ljust(4096, b"\0") + data


class Spirv:
    """Words of a module, ids as they come."""

    def __init__(self):
        self.words, self.next_id = [], 1

    def id(self):
        self.next_id += 1
        return self.next_id - 1

    def op(self, code, *operands):
        self.words += [(len(operands) + 1) << 16 | code, *operands]

    def bytes(self):
        words = [0x07230203, 0x00010000, 0, self.next_id, 0, *self.words]
        return struct.pack(f"<{len(words)}I", *words)


def text(name):
    raw = name.encode() + b"\0"
    raw += bytes(-len(raw) % 4)
    return struct.unpack(f"<{len(raw) // 4}I", raw)


def spirv():
    out = Spirv()
    for capability in (4, 5, 6, 10, 11, 22, 39):  # Addresses, Linkage, Kernel, Float64, Int64, Int16, Int8
        out.op(17, capability)
    out.op(14, 2, 2)  # OpMemoryModel Physical64 OpenCL
    functions = {name: out.id() for name in KERNELS}
    for name, function in functions.items():
        out.op(15, 6, function, *text(name))
    for name in VARIABLES:
        out.op(5, out.id(), *text(name))  # OpName
    void, types = out.id(), {}
    out.op(19, void)
    for name, size in (I8, U16, I32, I64):
        types[size] = out.id()
        out.op(21, types[size], size * 8, 0)
    floats = {size: out.id() for size in (4, 8)}
    for size, number in floats.items():
        out.op(22, number, size * 8)
    pointer, mixed, by_value = out.id(), out.id(), out.id()
    out.op(32, pointer, 5, types[1])
    out.op(30, mixed, types[1], floats[8])
    out.op(32, by_value, 7, mixed)
    bodies = []
    for name, signature in KERNELS.items():
        kinds = [pointer if a is P else by_value if a is MIXED else floats[a[1]] if a in (F32, F64) else types[a[1]]
                 for a in signature]
        shape = out.id()
        out.op(33, shape, void, *kinds)
        bodies.append((functions[name], shape, kinds))
    for function, shape, kinds in bodies:
        out.op(54, void, function, 0, shape)
        for kind in kinds:
            out.op(55, kind, out.id())
        out.op(248, out.id())
        out.op(253)
        out.op(56)
    return out.bytes()


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for target in ("gfx942", "gfx90a"):
        (out / f"kernels.{target}.co").write_bytes(code_object(target))
    (out / "kernels.bundle").write_bytes(bundle(["gfx90a", "gfx942"]))
    (out / "kernels.spv").write_bytes(spirv())
    for name in ("kernels.sm90.cubin", "kernels.fatbin"):  # what nvcc 13 makes of kernels.cu, compressed, as text
        packed = (Path(__file__).parent / f"{name}.gz.b64").read_bytes()
        (out / name).write_bytes(gzip.decompress(base64.b64decode(packed)))
    (out / "kernels.ptx").write_bytes((Path(__file__).parent / "kernels.ptx").read_bytes())
    if len(sys.argv) > 2:  # meson's stamp
        Path(sys.argv[2]).write_text("made\n")


main()
