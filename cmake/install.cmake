# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where. One component per Debian package; all of it finds itself from
# where it lies, so that a tree may be moved.
#
#   reshard         bin/reshard, its manual page and completion, share/reshard (topologies, traces),
#                   share/doc/reshard
#   reshard-mpi     lib/reshard: the MPI modules that were built
#   libreshard0     libreshard.so.0
#   libreshard-dev  its headers and link, the CMake package, reshard.pc
#   libreshard-mpi0, libreshard-mpi-dev  the same for libreshard_mpi.so (Open MPI) and
#   libreshard_mpich.so (MPICH), where they were built
#   libreshard-nccl0, libreshard-nccl-dev  the same for libreshard_nccl.so, where it was built
if(NOT RESHARD_INSTALL)
  return()
endif()
# Debian's folder for libraries, whatever the prefix: its loader, CMake and pkg-config look there
# under /usr/local, too.
if(EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE}
    CACHE PATH "Folder for libraries, below the prefix")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The manual page and the completion come from the program itself.
set(RESHARD_MANUAL ${PROJECT_BINARY_DIR}/reshard.1)
set(RESHARD_COMPLETION ${PROJECT_BINARY_DIR}/reshard.bash)
if(RESHARD_SANITIZE)
  set(run_reshard ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:reshard>)
else()
  set(run_reshard $<TARGET_FILE:reshard>)
endif()
add_custom_command(OUTPUT ${RESHARD_MANUAL} ${RESHARD_COMPLETION}
  COMMAND ${run_reshard} manual > ${RESHARD_MANUAL}
  COMMAND ${run_reshard} completion bash > ${RESHARD_COMPLETION}
  DEPENDS reshard
  VERBATIM)
add_custom_target(reshard_manual ALL DEPENDS ${RESHARD_MANUAL} ${RESHARD_COMPLETION})

install(TARGETS reshard RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT reshard)
install(FILES ${RESHARD_MANUAL} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT reshard)
install(FILES ${RESHARD_COMPLETION} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME reshard COMPONENT reshard)
install(DIRECTORY traces/topologies DESTINATION ${CMAKE_INSTALL_DATADIR}/reshard COMPONENT reshard
  FILES_MATCHING PATTERN "*.topo")
install(DIRECTORY traces/ DESTINATION ${CMAKE_INSTALL_DATADIR}/reshard/traces COMPONENT reshard
  FILES_MATCHING PATTERN "*.jsonl" PATTERN topologies EXCLUDE)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/reshard
  COMPONENT reshard)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/reshard COMPONENT reshard)
# Pages named after what they are about, as they leave their folders.
foreach(page traces/README.md=trace-format.md traces/topologies/README.md=topology-format.md
  traces/plan-format.md=plan-format.md traces/measurements-format.md=measurements-format.md
  tools/json-schemas.md=json-schemas.md)
  string(REPLACE "=" ";" page ${page})
  list(GET page 0 from)
  list(GET page 1 to)
  install(FILES ${from} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/reshard RENAME ${to}
    COMPONENT reshard)
endforeach()

if(RESHARD_MPI_MODULES)
  # Where the program looks: beside its own folder, whatever the libraries' folder is called.
  install(TARGETS ${RESHARD_MPI_MODULES} LIBRARY DESTINATION lib/reshard COMPONENT reshard-mpi)
endif()

install(TARGETS reshard_shared EXPORT reshardTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreshard0
  NAMELINK_COMPONENT libreshard-dev INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${RESHARD_API_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reshard
  COMPONENT libreshard-dev)
install(FILES tools/capi/README.md tools/capi/example.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libreshard-dev COMPONENT libreshard-dev)

if(RESHARD_MPI_LIBRARIES)
  install(TARGETS ${RESHARD_MPI_LIBRARIES} EXPORT reshardMpiTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreshard-mpi0
    NAMELINK_COMPONENT libreshard-mpi-dev)
  install(FILES tools/capi/reshard_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reshard
    COMPONENT libreshard-mpi-dev)
endif()

if(RESHARD_NCCL_LIBRARIES)
  install(TARGETS ${RESHARD_NCCL_LIBRARIES} EXPORT reshardNcclTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreshard-nccl0
    NAMELINK_COMPONENT libreshard-nccl-dev)
  install(FILES tools/capi/reshard_nccl.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reshard
    COMPONENT libreshard-nccl-dev)
endif()

# CMake and pkg-config.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/reshard)
configure_package_config_file(cmake/reshardConfig.cmake.in ${PROJECT_BINARY_DIR}/reshardConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reshardConfig.cmake
  ${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake DESTINATION ${package_dir}
  COMPONENT libreshard-dev)
install(EXPORT reshardTargets NAMESPACE reshard:: DESTINATION ${package_dir}
  COMPONENT libreshard-dev)
if(RESHARD_MPI_LIBRARIES)
  install(EXPORT reshardMpiTargets NAMESPACE reshard:: DESTINATION ${package_dir}
    COMPONENT libreshard-mpi-dev)
endif()
if(RESHARD_NCCL_LIBRARIES)
  install(EXPORT reshardNcclTargets NAMESPACE reshard:: DESTINATION ${package_dir}
    COMPONENT libreshard-nccl-dev)
endif()
# From the folder of the .pc file to the prefix: one "..", and one more for every folder of the
# path.
file(RELATIVE_PATH RESHARD_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RESHARD_PC_TO_PREFIX "${RESHARD_PC_TO_PREFIX}")
# reshard_pkg_config(NAME COMPONENT REQUIRES DESCRIPTION): NAME.pc, for -lNAME.
function(reshard_pkg_config RESHARD_PC_NAME component RESHARD_PC_REQUIRES RESHARD_PC_DESCRIPTION)
  configure_file(cmake/reshard.pc.in ${PROJECT_BINARY_DIR}/${RESHARD_PC_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${RESHARD_PC_NAME}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()
reshard_pkg_config(reshard libreshard-dev ""
  "Plans, proves, times and runs the redistribution of sharded tensors")
if(RESHARD_HAS_OPENMPI)
  reshard_pkg_config(reshard_mpi libreshard-mpi-dev reshard
    "Redistribution of sharded tensors on a communicator of Open MPI")
endif()
if(RESHARD_HAS_MPICH)
  reshard_pkg_config(reshard_mpich libreshard-mpi-dev reshard
    "Redistribution of sharded tensors on a communicator of MPICH")
endif()
if(RESHARD_NCCL_LIBRARIES)
  reshard_pkg_config(reshard_nccl libreshard-nccl-dev reshard
    "Redistribution of sharded tensors on an NCCL communicator")
endif()

include(cmake/package.cmake)
