# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks: ratios against a limit or a peer, measured in one run.
function(say_left_out what package)
  message(STATUS "reshard: ${what} not found, what needs it left out (apt install ${package})")
endfunction()

find_package(benchmark QUIET)
if(benchmark_FOUND)
  foreach(name dispatch engine plan planners store validate)
    reshard_program(reshard_bench_${name} tests/bench/bench_${name}.cpp reshard_tools
      benchmark::benchmark)
  endforeach()
else()
  say_left_out("Google Benchmark" libbenchmark-dev)
endif()
if(RESHARD_HAS_CUDA)
  reshard_program(reshard_bench_cuda tests/bench/bench_cuda.cpp reshard_cuda reshard_planners
    CUDA::cudart_static)
endif()

# The overhead of a step, and peers for tests/bench/mpi_peers.py. The peer that uses ScaLAPACK is
# only built on request.
if(TARGET reshard_mpi_parts)
  reshard_program(mpi_step_overhead tests/bench/mpi_step_overhead.cpp reshard_mpi_parts)
  reshard_program(mpi_peer_reshard tests/bench/mpi_peer_reshard.cpp reshard_mpi_parts
    reshard_pattern reshard_planners)
  find_library(SCALAPACK_LIBRARY scalapack-openmpi)
  if(SCALAPACK_LIBRARY)
    reshard_program(mpi_peer_scalapack tests/bench/mpi_peer_scalapack.cpp ${SCALAPACK_LIBRARY}
      reshard_mpi_library)
    set_target_properties(mpi_peer_scalapack PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endif()

# SimGrid shares links in the same way as the engine, which is compared with it. It swaps stacks,
# which sanitizers report as errors.
find_path(SIMGRID_INCLUDE simgrid/s4u.hpp)
find_library(SIMGRID_LIBRARY simgrid)
if(NOT SIMGRID_INCLUDE OR NOT SIMGRID_LIBRARY)
  say_left_out(SimGrid libsimgrid-dev)
elseif(NOT RESHARD_SANITIZE)
  reshard_program(reshard_simgrid_peer tests/bench/simgrid_peer.cpp reshard_network
    ${SIMGRID_LIBRARY})
  target_include_directories(reshard_simgrid_peer SYSTEM PRIVATE ${SIMGRID_INCLUDE})
  add_test(NAME simgrid_peer COMMAND reshard_simgrid_peer)
endif()
