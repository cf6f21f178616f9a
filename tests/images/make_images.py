"""make_images.py OUT: images of the test kernels, without a compiler.

PTX, a cubin, a fatbin and SPIR-V are compilers' output, kept as text. The code objects have names and signatures but no
code: the simulated drivers run host functions in place of their kernels. The kernels are those of kernels.cu.
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
    """The value of a note as MessagePack."""
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
    """An ELF file for the machine, with the note and a table of the kernels' names."""
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
    """A bundle as the compiler writes it: an empty entry for the host, then one entry for each target."""
    entries = [("host-x86_64-unknown-linux--", b"")]
    entries += [("hipv4-amdgcn-amd-amdhsa--" + t, code_object(t)) for t in targets]
    size = 32 + sum(24 + len(name) for name, _ in entries)
    table, data = b"", b""
    for name, body in entries:
        table += struct.pack("<QQQ", 4096 + len(data), len(body), len(name)) + name.encode()
        data += body
    assert size <= 4096
    return (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + table).ljust(4096, b"\0") + data


# ---- SPIR-V with specialisation constants, and SPIR-V that is linked


def op(code, *operands):
    words = []
    for operand in operands:
        if isinstance(operand, str):
            data = operand.encode() + b"\0"
            words += struct.unpack(f"<{-(-len(data) // 4)}I", data + bytes(-len(data) % 4))
        else:
            words.append(operand)
    return struct.pack(f"<{1 + len(words)}I", (1 + len(words)) << 16 | code, *words)


IMPORT, EXPORT = 1, 0
VOID, BOOL, INT, LONG, FLOAT, POINTER, KERNEL, CALLED, HELPER, ENTRY = range(1, 11)


def spirv(entry="", helper=None, constants=(7, 1.5, True, 1 << 40)):
    """A kernel that stores its constants 0 (uint), 3 (float), 4 (bool) and 9 (ulong), and the result of a function
    `twice`, which this module imports or exports; without `entry` only that function, with the constant 0."""
    decorations = op(71, 20, 1, 0)
    values = op(50, INT, 20, constants[0])
    if entry:
        decorations += op(71, 21, 1, 3) + op(71, 22, 1, 4) + op(71, 23, 1, 9)
        values += op(50, FLOAT, 21, *struct.unpack("<I", struct.pack("<f", constants[1])))
        values += op(48 if constants[2] else 49, BOOL, 22) + op(50, LONG, 23, constants[3] & 0xFFFFFFFF, constants[3] >> 32)
    if helper is not None:
        decorations += op(71, HELPER, 41, "twice", helper)
    values += b"".join(op(43, INT, 30 + i, i) for i in range(5)) + op(43, LONG, 40, 0, 0) + op(43, LONG, 41, 1, 0)
    body = b"".join(op(17, capability) for capability in (4, 5, 6, 11)) + op(14, 2, 2)
    if entry:
        body += op(15, 6, ENTRY, entry)
    body += decorations
    body += op(19, VOID) + op(20, BOOL) + op(21, INT, 32, 0) + op(21, LONG, 64, 0) + op(22, FLOAT, 32)
    body += op(32, POINTER, 5, LONG) + op(33, KERNEL, VOID, POINTER) + op(33, CALLED, LONG, LONG) + values
    if helper is not None:
        body += op(54, LONG, HELPER, 0, CALLED) + op(55, LONG, 50)
        if helper == EXPORT:
            body += op(248, 51) + op(128, LONG, 52, 50, 50) + op(254, 52)
        body += op(56)
    if entry:
        body += op(54, VOID, ENTRY, 0, KERNEL) + op(55, POINTER, 60) + op(248, 61)
        body += op(113, LONG, 62, 20) + op(124, INT, 63, 21) + op(113, LONG, 64, 63) + op(169, LONG, 65, 22, 41, 40)
        last = 23
        if helper is not None:
            body += op(57, LONG, 66, HELPER, 23)
            last = 66
        for i, value in enumerate((62, 64, 65, last)):
            body += op(70, POINTER, 70 + i, 60, 30 + i) + op(62, 70 + i, value, 2, 8)
        body += op(253) + op(56)
    return struct.pack("<5I", 0x07230203, 0x00010000, 0, 100, 0) + body


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for target in ("gfx942", "gfx90a"):
        (out / f"kernels.{target}.co").write_bytes(code_object(target))
    (out / "kernels.bundle").write_bytes(bundle(["gfx90a", "gfx942"]))
    # The output of nvcc 13 for kernels.cu, and of llvm-spirv 15 for kernels.cl, compressed, as text:
    for name in ("kernels.sm90.cubin", "kernels.fatbin", "kernels.spv"):
        packed = (Path(__file__).parent / f"{name}.gz.b64").read_bytes()
        (out / name).write_bytes(gzip.decompress(base64.b64decode(packed)))
    (out / "constants.spv").write_bytes(spirv("constants"))
    (out / "linked.spv").write_bytes(spirv("linked", IMPORT))
    (out / "twice.spv").write_bytes(spirv(helper=EXPORT, constants=(11,)))
    (out / "kernels.ptx").write_bytes((Path(__file__).parent / "kernels.ptx").read_bytes())
    if len(sys.argv) > 2:  # the stamp file for meson
        Path(sys.argv[2]).write_text("made\n")


main()
