"""A /sys/class/kfd/kfd/topology for GPUs that do not exist: HSA_MODEL_TOPOLOGY.

    topology.py DIRECTORY [ARCHITECTURE [GPUS]]
"""

import pathlib
import shutil
import sys

GIB = 1 << 30
# What differs between architectures, as Linux's driver reports a small part of an MI300X, and an RX 7900 XTX.
ARCHITECTURES = {
    "gfx942": {
        "gfx_target_version": 90402, "wave_front_size": 64, "device_id": 29857, "max_waves_per_simd": 8, "simd_per_cu": 4,
        "simd_count": 16, "array_count": 1, "simd_arrays_per_engine": 1, "cu_per_simd_array": 4, "num_sdma_queues_per_engine": 8,
        "num_cp_queues": 24, "max_engine_clk_fcompute": 1700,
    },
    "gfx1100": {
        "gfx_target_version": 110000, "wave_front_size": 32, "device_id": 29772, "max_waves_per_simd": 16, "simd_per_cu": 2,
        "simd_count": 192, "array_count": 12, "simd_arrays_per_engine": 2, "cu_per_simd_array": 8, "num_sdma_queues_per_engine": 6,
        "num_cp_queues": 8, "max_engine_clk_fcompute": 2482, "family_id": 145,
    },
}  # fmt: skip
# Those whose GPUs xGMI connects with each other; others are reached through PCIe.
WITH_XGMI = ("gfx942",)
# Without bit 29: AMD's model of the driver has no debugger.
CAPABILITY = 134718080

CPU = {
    "cpu_cores_count": 2, "simd_count": 0, "mem_banks_count": 1, "caches_count": 0, "io_links_count": 1,
    "p2p_links_count": 0, "cpu_core_id_base": 0, "simd_id_base": 0, "max_waves_per_simd": 0, "lds_size_in_kb": 0,
    "gds_size_in_kb": 0, "num_gws": 0, "wave_front_size": 0, "array_count": 0, "simd_arrays_per_engine": 0,
    "cu_per_simd_array": 0, "simd_per_cu": 0, "max_slots_scratch_cu": 0, "gfx_target_version": 0, "vendor_id": 0,
    "device_id": 0, "location_id": 0, "domain": 0, "drm_render_minor": 0, "hive_id": 0, "num_sdma_engines": 0,
    "num_sdma_xgmi_engines": 0, "num_sdma_queues_per_engine": 0, "num_cp_queues": 0, "max_engine_clk_ccompute": 2000,
}  # fmt: skip


def gpu(architecture, ordinal, gpus):
    return {
        **CPU, "cpu_cores_count": 0, "caches_count": 2, "io_links_count": gpus, "simd_id_base": 2147487744 + 4096 * ordinal,
        "lds_size_in_kb": 64, "max_slots_scratch_cu": 32, "vendor_id": 4098, "location_id": 256 * (ordinal + 1),
        "drm_render_minor": 128 + ordinal, "num_sdma_engines": 2, "local_mem_size": 0, "fw_version": 80,
        "capability": CAPABILITY, "debug_prop": 0, "sdma_fw_version": 20, "unique_id": 1234567890 + ordinal, "num_xcc": 1,
        "hive_id": 77 if gpus > 1 and architecture in WITH_XGMI else 0, **ARCHITECTURES[architecture],
    }  # fmt: skip


def write(path, properties):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} {value}\n" for name, value in properties.items()))


def write_bank(node, kind, size, width, clock):
    bank = {"heap_type": kind, "size_in_bytes": size, "flags": 0, "width": width, "mem_clk_max": clock}
    write(node / "mem_banks/0/properties", bank)


def write_cache(node, number, level, size, base):
    cache = {"processor_id_low": base, "level": level, "size": size, "cache_line_size": 128,
             "cache_lines_per_tag": 1, "association": 16, "latency": 0, "type": 9, "sibling_map": 1}  # fmt: skip
    write(node / f"caches/{number}/properties", cache)


def write_links(node, ends, xgmi=False):
    """Links to the nodes of a directory's number: PCIe (2) with the host, xGMI (11) or PCIe between GPUs."""
    start = int(node.name)
    for number, end in enumerate(ends):
        link = {"type": 11 if xgmi and start and end else 2, "version_major": 0, "version_minor": 0, "node_from": start,
                "node_to": end, "weight": 15 if start and end else 20, "min_latency": 0, "max_latency": 0,
                "min_bandwidth": 0, "max_bandwidth": 0, "recommended_transfer_size": 0, "flags": 1}  # fmt: skip
        write(node / f"io_links/{number}/properties", link)


def write_node(node, gpu_id, name, properties):
    node.mkdir(parents=True)
    (node / "gpu_id").write_text(f"{gpu_id}\n")
    (node / "name").write_text(f"{name}\n")
    write(node / "properties", properties)


def write_topology(directory, architecture="gfx942", gpus=1, memory=4 * GIB):
    directory = pathlib.Path(directory)
    shutil.rmtree(directory, ignore_errors=True)
    write(directory / "system_properties", {"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
    (directory / "generation_id").write_text("1\n")
    host = directory / "nodes/0"
    write_node(host, 0, "", {**CPU, "io_links_count": gpus})
    write_bank(host, 0, 8 * GIB, 64, 2000)
    write_links(host, range(1, gpus + 1))
    for ordinal in range(gpus):
        node, properties = directory / f"nodes/{ordinal + 1}", gpu(architecture, ordinal, gpus)
        write_node(node, ordinal + 2, "model", properties)  # AMD's model requires the node's number plus one
        write_bank(node, 1, memory, 4096, 1600)
        write_cache(node, 0, 1, 32, properties["simd_id_base"])
        write_cache(node, 1, 2, 4096, properties["simd_id_base"])
        write_links(node, [n for n in range(gpus + 1) if n != ordinal + 1], architecture in WITH_XGMI)


if __name__ == "__main__":
    write_topology(sys.argv[1], *sys.argv[2:3], *map(int, sys.argv[3:4]))
