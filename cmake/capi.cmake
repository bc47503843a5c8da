# SPDX-License-Identifier: BSD-3-Clause
# libreshard.so: the C API over everything that plans, proves, times and runs in host memory. Its headers are read as <reshard/reshard.h>, in the build tree as after installation.
add_library(reshard_shared SHARED
  tools/capi/execute.cpp
  tools/capi/guard.cpp
  tools/capi/host_run.cpp
  tools/capi/plan_facts.cpp
  tools/capi/planning.cpp
  tools/capi/program_questions.cpp)
add_library(reshard::reshard ALIAS reshard_shared)
set_target_properties(reshard_shared PROPERTIES
  OUTPUT_NAME reshard
  EXPORT_NAME reshard
  VERSION ${PROJECT_VERSION}
  SOVERSION 0
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON
  # The parts inside are compiled with default visibility for our own tests; the list of names is what counts.
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capi/reshard.map)
target_link_options(reshard_shared PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/tools/capi/reshard.map")
target_link_libraries(reshard_shared PRIVATE reshard_planners reshard_bounds reshard_machines reshard_network reshard_bytes reshard_flags)

configure_file(tools/capi/reshard.h ${PROJECT_BINARY_DIR}/include/reshard/reshard.h COPYONLY)
target_include_directories(reshard_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)

# The same on a caller's MPI communicator: one library per MPI that was found, as programs of the two do not mix.
function(reshard_mpi_api name output parts)
  add_library(${name} SHARED
    tools/capi/guard.cpp
    tools/capi/mpi_functions.cpp)
  add_library(reshard::${output} ALIAS ${name})
  set_target_properties(${name} PROPERTIES
    OUTPUT_NAME ${output}
    EXPORT_NAME ${output}
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capi/reshard_mpi.map)
  target_link_options(${name} PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/tools/capi/reshard_mpi.map")
  target_link_libraries(${name} PUBLIC reshard_shared PRIVATE ${parts} reshard_flags)
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
configure_file(tools/capi/reshard_mpi.h ${PROJECT_BINARY_DIR}/include/reshard/reshard_mpi.h COPYONLY)

# On a caller's NCCL communicator. NCCL is the caller's, found in the process at run time; the CUDA runtime is our own copy inside, as streams and memory belong to the GPU's context and not to a
# runtime.
set(RESHARD_NCCL_LIBRARIES)
if(RESHARD_HAS_NCCL)
  add_library(reshard_nccl_shared SHARED
    tools/capi/guard.cpp
    tools/capi/nccl_functions.cpp)
  add_library(reshard::reshard_nccl ALIAS reshard_nccl_shared)
  set_target_properties(reshard_nccl_shared PROPERTIES
    OUTPUT_NAME reshard_nccl
    EXPORT_NAME reshard_nccl
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capi/reshard_nccl.map)
  target_link_options(reshard_nccl_shared PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/tools/capi/reshard_nccl.map")
  target_link_libraries(reshard_nccl_shared PUBLIC reshard_shared PRIVATE reshard_nccl_library reshard_flags)
  list(APPEND RESHARD_NCCL_LIBRARIES reshard_nccl_shared)
endif()
configure_file(tools/capi/reshard_nccl.h ${PROJECT_BINARY_DIR}/include/reshard/reshard_nccl.h COPYONLY)
