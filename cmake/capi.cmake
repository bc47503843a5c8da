# SPDX-License-Identifier: BSD-3-Clause
# libreshard.so: the C API over everything that plans, proves, times and runs in host memory. Its
# headers are read as <reshard/reshard.h>, in the build tree as after installation.

# reshard_api(TARGET OUTPUT MAP SOURCES...): lib<OUTPUT>.so.0, known as reshard::<OUTPUT>, of whose
# names those of the map are seen. The parts inside are compiled with default visibility for our own
# tests; the list of names is what counts.
function(reshard_api target output map)
  list(TRANSFORM ARGN PREPEND tools/capi/ OUTPUT_VARIABLE sources)
  add_library(${target} SHARED ${sources})
  add_library(reshard::${output} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${output}
    EXPORT_NAME ${output}
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capi/${map})
  target_link_options(${target} PRIVATE ${RESHARD_RUNTIME_OPTIONS}
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/tools/capi/${map}")
endfunction()

reshard_api(reshard_shared reshard reshard.map command.cpp execute.cpp guard.cpp
  host/host_run.cpp host/lent_memory.cpp host/rings.cpp plan_facts.cpp planning.cpp
  program_questions.cpp)
target_link_libraries(reshard_shared PRIVATE reshard_core reshard_host reshard_store reshard_study
  reshard_machines reshard_network reshard_commands ${RESHARD_FMT} CLI11::CLI11 reshard_flags)

# The C header, and over it those for C++.
set(RESHARD_API_HEADERS tools/capi/reshard.h tools/capi/reshard_rings.h tools/capi/reshard.hpp
  tools/capi/reshard_base.hpp)
foreach(header ${RESHARD_API_HEADERS})
  cmake_path(GET header FILENAME name)
  configure_file(${header} ${PROJECT_BINARY_DIR}/include/reshard/${name} COPYONLY)
endforeach()
target_include_directories(reshard_shared PUBLIC
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)

# The same on a caller's MPI communicator: one library per MPI that was found, as programs of the
# two do not mix.
function(reshard_mpi_api target output parts)
  reshard_api(${target} ${output} reshard_mpi.map guard.cpp mpi_functions.cpp)
  target_link_libraries(${target} PUBLIC reshard_shared PRIVATE ${parts} reshard_text reshard_flags)
endfunction()
set(RESHARD_MPI_LIBRARIES)
if(RESHARD_HAS_OPENMPI)
  reshard_mpi_api(reshard_mpi_shared reshard_mpi reshard_mpi_parts)
  list(APPEND RESHARD_MPI_LIBRARIES reshard_mpi_shared)
endif()
if(RESHARD_HAS_MPICH)
  reshard_mpi_api(reshard_mpich_shared reshard_mpich reshard_mpich_parts)
  list(APPEND RESHARD_MPI_LIBRARIES reshard_mpich_shared)
endif()
configure_file(tools/capi/reshard_mpi.h ${PROJECT_BINARY_DIR}/include/reshard/reshard_mpi.h
  COPYONLY)

# On a caller's NCCL communicator. NCCL is the caller's, found in the process at run time; the CUDA
# runtime is our own copy inside, as streams and memory belong to the GPU's context and not to a
# runtime.
set(RESHARD_NCCL_LIBRARIES)
if(RESHARD_HAS_NCCL)
  reshard_api(reshard_nccl_shared reshard_nccl reshard_nccl.map guard.cpp nccl_functions.cpp)
  target_link_libraries(reshard_nccl_shared PUBLIC reshard_shared PRIVATE reshard_nccl_library
    reshard_text reshard_flags)
  list(APPEND RESHARD_NCCL_LIBRARIES reshard_nccl_shared)
endif()
configure_file(tools/capi/reshard_nccl.h ${PROJECT_BINARY_DIR}/include/reshard/reshard_nccl.h
  COPYONLY)
