# For Spack 1.0 and later. packaging/release.py fills in the words between at signs.
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyGpuglue(PythonPackage):
    """Drive NVIDIA, AMD and Intel GPUs, or none, from one small package: device, streams, memory, copies and launches.
    The vendors' drivers are found at run time, so it has no variants."""

    homepage = "@URL@"
    url = "@ARCHIVE@"

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-meson-python@0.22.1:", type="build")
    depends_on("meson@1.3:", type="build")
    depends_on("ninja", type="build")
    depends_on("patchelf", type="build")
    depends_on("py-numpy@2:", type="build")
    depends_on("py-numpy@1.24:", type="run")

    conflicts("platform=darwin", msg="gpuglue is for Linux")
    conflicts("platform=windows", msg="gpuglue is for Linux")

    import_modules = ["gpuglue", "gpuglue.compat"]
