# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks: ratios against a limit or a peer, measured in one run.
function(bench name source)
  add_executable(${name} tests/bench/${source})
  target_link_libraries(${name} PRIVATE ${ARGN} reshard_flags ${RESHARD_FMT})
endfunction()

find_package(benchmark QUIET)
if(benchmark_FOUND)
  foreach(name dispatch engine plan planners store validate)
    bench(reshard_bench_${name} bench_${name}.cpp reshard_tools benchmark::benchmark)
  endforeach()
else()
  message(STATUS
    "reshard: Google Benchmark not found, benchmarks left out (apt install libbenchmark-dev)")
endif()
if(RESHARD_HAS_CUDA)
  bench(reshard_bench_cuda bench_cuda.cpp reshard_cuda reshard_planners CUDA::cudart_static)
endif()

# The overhead of a step, and peers for tests/bench/mpi_peers.py; that of ScaLAPACK is built when
# asked for.
if(TARGET reshard_mpi_parts)
  bench(mpi_step_overhead mpi_step_overhead.cpp reshard_mpi_parts)
  bench(mpi_peer_reshard mpi_peer_reshard.cpp reshard_mpi_parts reshard_pattern reshard_planners)
  find_library(SCALAPACK_LIBRARY scalapack-openmpi)
  mark_as_advanced(SCALAPACK_LIBRARY)
  if(SCALAPACK_LIBRARY)
    bench(mpi_peer_scalapack mpi_peer_scalapack.cpp ${SCALAPACK_LIBRARY} reshard_mpi_library)
    set_target_properties(mpi_peer_scalapack PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endif()

# SimGrid shares links as the engine does: what it says is what the engine is compared with. It
# swaps stacks, which sanitizers take for errors.
find_path(SIMGRID_INCLUDE simgrid/s4u.hpp)
find_library(SIMGRID_LIBRARY simgrid)
if(NOT SIMGRID_INCLUDE OR NOT SIMGRID_LIBRARY)
  message(STATUS
    "reshard: SimGrid not found, the comparison with it left out (apt install libsimgrid-dev)")
elseif(NOT RESHARD_SANITIZE)
  bench(reshard_simgrid_peer simgrid_peer.cpp reshard_network ${SIMGRID_LIBRARY})
  target_include_directories(reshard_simgrid_peer SYSTEM PRIVATE ${SIMGRID_INCLUDE})
  if(RESHARD_BUILD_TESTS)
    add_test(NAME simgrid_peer COMMAND reshard_simgrid_peer)
  endif()
endif()
