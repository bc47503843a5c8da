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

set(RESHARD_SHARED_LIBRARIES reshard_shared)
set(RESHARD_PUBLIC_HEADERS ${PROJECT_SOURCE_DIR}/tools/capi/reshard.h)
