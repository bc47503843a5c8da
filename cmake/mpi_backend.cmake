# SPDX-License-Identifier: BSD-3-Clause
# The MPI backend: one shared module per implementation of MPI that was found, from the same
# sources. The program opens the one that its launcher belongs to (backends/registry/mpi_plugin.cpp)
# and links neither.

# reshard_mpi_module(NAME MPI): the module NAME.so against the target MPI, and NAME_parts, what it
# is made of, for tests and for other programs that have a communicator.
function(reshard_mpi_module name mpi)
  reshard_part(${name}_parts SOURCES
    backends/mpi/calls.cpp
    backends/mpi/executor.cpp
    backends/mpi/native_collective.cpp
    backends/mpi/parts.cpp
    backends/mpi/prepared.cpp
    backends/mpi/session.cpp
    backends/mpi/shared_rings.cpp
    backends/mpi/traffic.cpp
    backends/mpi/world.cpp
    LINKS reshard_job reshard_host reshard_traffic ${mpi} Threads::Threads)
  add_library(${name} MODULE backends/mpi/module.cpp)
  # Nothing but its one entry is seen from outside: it carries its own copy of core.
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)
  target_link_libraries(${name} PRIVATE ${name}_parts reshard_flags)
endfunction()

set(RESHARD_MPI_MODULES)
if(RESHARD_HAS_OPENMPI)
  reshard_mpi_module(reshard_mpi reshard_openmpi)
  list(APPEND RESHARD_MPI_MODULES reshard_mpi)
endif()
if(RESHARD_HAS_MPICH)
  reshard_mpi_module(reshard_mpich reshard_mpich_library)
  list(APPEND RESHARD_MPI_MODULES reshard_mpich)
endif()
if(RESHARD_HAS_MPI)
  target_sources(reshard_backends PRIVATE backends/registry/mpi_plugin.cpp)
  target_compile_definitions(reshard_backends PRIVATE RESHARD_HAS_MPI=1)
  target_link_libraries(reshard_backends PRIVATE ${CMAKE_DL_LIBS})
  # Built whenever the registry is: a program without its modules would say that they are missing.
  add_dependencies(reshard_backends ${RESHARD_MPI_MODULES})
endif()

# The overhead of a step, and peers for tests/bench/mpi_peers.py; that of ScaLAPACK is built when
# asked for.
if(RESHARD_HAS_OPENMPI AND RESHARD_BUILD_BENCH)
  add_executable(mpi_step_overhead tests/bench/mpi_step_overhead.cpp)
  target_link_libraries(mpi_step_overhead PRIVATE reshard_mpi_parts reshard_proof reshard_flags)
  add_executable(mpi_peer_reshard tests/bench/mpi_peer_reshard.cpp)
  target_link_libraries(mpi_peer_reshard PRIVATE reshard_mpi_parts reshard_pattern
    reshard_planners reshard_proof reshard_flags)
  find_library(SCALAPACK_LIBRARY scalapack-openmpi)
  mark_as_advanced(SCALAPACK_LIBRARY)
  if(SCALAPACK_LIBRARY)
    add_executable(mpi_peer_scalapack EXCLUDE_FROM_ALL tests/bench/mpi_peer_scalapack.cpp)
    target_link_libraries(mpi_peer_scalapack PRIVATE ${SCALAPACK_LIBRARY} reshard_openmpi
      reshard_flags)
  endif()
endif()
