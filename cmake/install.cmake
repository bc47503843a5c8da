# SPDX-License-Identifier: BSD-3-Clause
# Where `cmake --install` puts what, and what `cpack` in the build tree makes of it: a .tar.gz of
# everything, and one Debian package per component. All files find each other by relative paths, so
# a tree can be moved. With SOURCE_DATE_EPOCH the packages have the same bytes every time.
#
#   reshard         bin/reshard, its manual page and completion, share/reshard (topologies, traces),
#                   share/doc/reshard
#   reshard-mpi     lib/reshard: the MPI modules that were built
#   libreshard0     libreshard.so.0; libreshard-mpi0, libreshard-nccl0: the same over communicators
#   libreshard-dev  its headers and link, the CMake package, reshard.pc; libreshard-mpi-dev,
#                   libreshard-nccl-dev
#
# Libraries go to Debian's folder for them under every prefix: Debian's loader, CMake and pkg-config
# also search it under /usr/local.
if(EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE}
    CACHE PATH "Folder for libraries, below the prefix")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(documents ${CMAKE_INSTALL_DATADIR}/doc/reshard)
set(cmake_files ${CMAKE_INSTALL_LIBDIR}/cmake/reshard)

# add_package(NAME SECTION DEPENDS SUMMARY CONTENT): begins a component and its Debian package, with
# everything that is installed from here on.
macro(add_package name section depends summary content)
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME ${name})
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  string(CONCAT CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n"
    "Given a tensor that lies on some ranks in one way and is wanted in another,\n"
    "reshard plans the redistribution, proves the plan from index sets, moves every\n"
    "rank's bytes in one process, and times it on a simulated machine beside the\n"
    "least time that its links allow.\n.\nThis package has ${content}.")
endmacro()

# ---- the program ---------------------------------------------------------------------------------
add_package(reshard science "" "plan, prove and time the redistribution of sharded tensors"
  "the program")
install(TARGETS reshard RUNTIME)
# The program itself writes the manual page and the completion.
set(ask ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:reshard>)
add_custom_command(TARGET reshard POST_BUILD BYPRODUCTS reshard.1 reshard.bash
  COMMAND ${ask} manual > reshard.1 COMMAND ${ask} completion bash > reshard.bash)
install(FILES ${PROJECT_BINARY_DIR}/reshard.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/reshard.bash RENAME reshard
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# Outside their folders, pages are named after their subjects.
install(FILES README.md CHANGELOG.md LICENSE traces/plan-format.md traces/measurements-format.md
  tools/json-schemas.md DESTINATION ${documents})
install(FILES traces/README.md RENAME trace-format.md DESTINATION ${documents})
install(FILES traces/topologies/README.md RENAME topology-format.md DESTINATION ${documents})
install(DIRECTORY docs DESTINATION ${documents})
install(DIRECTORY traces/topologies DESTINATION ${CMAKE_INSTALL_DATADIR}/reshard
  FILES_MATCHING PATTERN "*.topo")
install(DIRECTORY traces/ DESTINATION ${CMAKE_INSTALL_DATADIR}/reshard/traces
  FILES_MATCHING PATTERN "*.jsonl" PATTERN topologies EXCLUDE)
if(RESHARD_HAS_MPI)
  add_package(reshard-mpi science "reshard (= ${PROJECT_VERSION})"
    "run redistributions of sharded tensors on MPI"
    "the modules with which the program runs plans on MPI")
  # Recommended, not required: the modules are run with `mpirun`, but the packages have other uses.
  set(CPACK_DEBIAN_RESHARD-MPI_PACKAGE_RECOMMENDS "openmpi-bin | mpich")
  # The path in which the program looks: relative to its own folder, whatever the libraries' folder
  # is called.
  list(TRANSFORM RESHARD_MPI_FLAVOURS PREPEND reshard_ OUTPUT_VARIABLE libraries-mpi)
  install(TARGETS ${libraries-mpi} LIBRARY DESTINATION lib/reshard)
endif()

# ---- the libraries -------------------------------------------------------------------------------
# From the folder of the .pc file to the prefix: one "..", and one more for each folder of the path.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RESHARD_PC_TO_PREFIX "${to_prefix}")
set(libraries reshard)
if(RESHARD_HAS_NCCL)
  set(libraries-nccl reshard_nccl)
endif()
set(headers ${RESHARD_API_HEADERS})
set(headers-mpi reshard_mpi.h)
set(headers-nccl reshard_nccl.h)
foreach(over "" -mpi -nccl)
  if(NOT libraries${over})
    continue()
  endif()
  set(runtime libreshard${over}0)
  set(dev libreshard${over}-dev)
  string(REPLACE - " over " of "redistribution of sharded tensors${over}")
  add_package(${runtime} libs "${needs}" "${of} - shared library"
    "the C library, which runs plans over communicators\nof the calling program, too")
  # Debian's policy for a library: dependent packages are told its version in `shlibs`, and a
  # trigger, not a script, updates the loader's cache.
  set(control ${PROJECT_BINARY_DIR}/debian/${runtime})
  file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
  file(WRITE ${control}/shlibs "")
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${control}/shlibs ${control}/triggers)
  if(CMAKE_INSTALL_LIBDIR STREQUAL "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_MULTIARCH same)
  endif()
  add_package(${dev} libdevel "${dev_needs}${runtime} (= ${PROJECT_VERSION})"
    "${of} - development files" "what programs that use the C library are built with")
  foreach(RESHARD_PC_NAME ${libraries${over}})
    file(APPEND ${control}/shlibs "lib${RESHARD_PC_NAME} 0 ${runtime} (>= ${PROJECT_VERSION})\n")
    install(TARGETS ${RESHARD_PC_NAME}_shared EXPORT reshard${over}
      LIBRARY COMPONENT ${runtime} NAMELINK_COMPONENT ${dev}
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    configure_file(cmake/reshard.pc.in ${RESHARD_PC_NAME}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${RESHARD_PC_NAME}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()
  install(EXPORT reshard${over} NAMESPACE reshard:: DESTINATION ${cmake_files}
    FILE reshard${over}-targets.cmake)
  list(TRANSFORM headers${over} PREPEND tools/capi/)
  install(FILES ${headers${over}} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reshard)
  if(NOT over)
    configure_package_config_file(cmake/reshardConfig.cmake.in reshardConfig.cmake
      INSTALL_DESTINATION ${cmake_files})
    write_basic_package_version_file(reshardConfigVersion.cmake COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/reshardConfig.cmake
      ${PROJECT_BINARY_DIR}/reshardConfigVersion.cmake DESTINATION ${cmake_files})
    install(FILES tools/capi/README.md tools/capi/example.py
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${dev})
    # The libraries that follow depend on the first one's package.
    set(RESHARD_PC_REQUIRES reshard)
    set(needs "${runtime} (= ${PROJECT_VERSION})")
    set(dev_needs "${dev} (= ${PROJECT_VERSION}), ")
  endif()
endforeach()

# ---- packages ------------------------------------------------------------------------------------
set(RESHARD_CONTACT "The reshard authors <reshard@example.org>"
  CACHE STRING "Maintainer field of the packages")
set(RESHARD_HOMEPAGE "" CACHE STRING "Homepage field of the packages")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT ${RESHARD_CONTACT})
set(CPACK_PACKAGE_HOMEPAGE_URL ${RESHARD_HOMEPAGE})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Needs dpkg-shlibdeps. Without it, debian_files.cmake makes no .deb, because it would lack its
# dependencies. Dependencies between our own packages are found before any of them is installed.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
include(CPack)
