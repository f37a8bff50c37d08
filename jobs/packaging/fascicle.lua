-- Lmod modulefile. Copy to MODULEPATH/fascicle/0.1.0.lua and set `prefix` to where `cmake --install build --prefix ...` went.
local prefix = "/opt/fascicle/0.1.0"

help([[Train and simulate connectomes on many ranks. Start: fascicle --help; job files: $FASCICLE_JOBS/*.sbatch]])
whatis("Name: fascicle")
whatis("Version: 0.1.0")
whatis("Description: recurrent networks and spiking neurons wired by a connectome, on MPI ranks and GPUs")

depends_on("openmpi", "hdf5")

prepend_path("PATH", pathJoin(prefix, "bin"))
local lib = isDir(pathJoin(prefix, "lib64")) and "lib64" or "lib"
prepend_path("LD_LIBRARY_PATH", pathJoin(prefix, lib))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, lib, "pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("PYTHONPATH", pathJoin(prefix, "share/fascicle/jobs/python"))
prepend_path("PYTHONPATH", pathJoin(prefix, "share/fascicle/jobs/analysis"))
setenv("FASCICLE", pathJoin(prefix, "bin/fascicle"))
setenv("FASCICLE_JOBS", pathJoin(prefix, "share/fascicle/jobs"))
