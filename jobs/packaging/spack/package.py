# Spack recipe: copy the folder to REPO/packages/fascicle/ of a Spack repository. Looked at by a Python compiler in the tests, not run there.
from spack.package import *


class Fascicle(CMakePackage, CudaPackage):
    """Train recurrent networks and simulate spiking neurons wired by a connectome, on MPI ranks and GPUs."""

    license("MIT")
    version("main", branch="main")

    variant("cuda", default=False, description="Build the CUDA backend and the NCCL transport")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hdf5+mpi")
    depends_on("metis")
    depends_on("jansson")
    depends_on("openssl")
    depends_on("lz4")
    depends_on("zstd")
    depends_on("zlib-api")
    depends_on("nccl", when="+cuda")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("FASCICLE_CUDA", "on" if self.spec.satisfies("+cuda") else "off"),
            self.define("BUILD_TESTING", False),
        ]
        architectures = self.spec.variants["cuda_arch"].value if self.spec.satisfies("+cuda") else ("none",)
        if "none" not in architectures:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(architectures)))
        return args
