# SPDX-License-Identifier: BSD-3-Clause
# `cpack` in the build tree: a .tar.gz of everything, and Debian packages, one per component of
# install.cmake. SOURCE_DATE_EPOCH makes them the same bytes every time.
set(RESHARD_CONTACT "The reshard authors <reshard@example.org>"
  CACHE STRING "Maintainer field of the packages")
set(RESHARD_HOMEPAGE "" CACHE STRING "Homepage field of the packages")

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME reshard)
set(CPACK_PACKAGE_VENDOR "The reshard authors")
set(CPACK_PACKAGE_CONTACT ${RESHARD_CONTACT})
set(CPACK_PACKAGE_HOMEPAGE_URL ${RESHARD_HOMEPAGE})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL reshard libreshard0 libreshard-dev)
if(RESHARD_MPI_MODULES)
  list(APPEND CPACK_COMPONENTS_ALL reshard-mpi libreshard-mpi0 libreshard-mpi-dev)
endif()
if(RESHARD_NCCL_LIBRARIES)
  list(APPEND CPACK_COMPONENTS_ALL libreshard-nccl0 libreshard-nccl-dev)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE ${RESHARD_HOMEPAGE})
# Needs dpkg-shlibdeps; without it debian_files.cmake makes no .deb rather than one that lacks what
# it depends on.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Who uses the library depends on its package; installing it tells the loader, by a trigger and not
# by a script.
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libreshard 0 libreshard0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/mpi/shlibs
  "libreshard_mpi 0 libreshard-mpi0 (>= ${PROJECT_VERSION})\n"
  "libreshard_mpich 0 libreshard-mpi0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/nccl/shlibs
  "libreshard_nccl 0 libreshard-nccl0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRESHARD0_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs
  ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBRESHARD-MPI0_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/mpi/shlibs
  ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBRESHARD-NCCL0_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/nccl/shlibs
  ${PROJECT_BINARY_DIR}/debian/triggers)
# What one package of ours needs of another is found before either is installed.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
if(CMAKE_LIBRARY_ARCHITECTURE AND CMAKE_INSTALL_LIBDIR STREQUAL "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  set(CPACK_DEBIAN_LIBRESHARD0_PACKAGE_MULTIARCH same)
  set(CPACK_DEBIAN_LIBRESHARD-MPI0_PACKAGE_MULTIARCH same)
  set(CPACK_DEBIAN_LIBRESHARD-NCCL0_PACKAGE_MULTIARCH same)
endif()

# reshard_package(NAME SECTION DEPENDS SUMMARY DESCRIPTION): the fields of one package.
macro(reshard_package name section depends summary description)
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${description}")
endmacro()
string(CONCAT what
  "Given a tensor that lies on some ranks in one way and is wanted in another,\n"
  "reshard plans the redistribution, proves the plan from index sets, moves every\n"
  "rank's bytes in one process, and times it on a simulated machine beside the\n"
  "least time that its links allow.")
reshard_package(reshard science "" "plan, prove and time the redistribution of sharded tensors"
  "${what}\n.\nThis package has the program.")
reshard_package(reshard-mpi science "reshard (= ${PROJECT_VERSION})"
  "run redistributions of sharded tensors on MPI"
  "${what}\n.\nThis package has the modules with which the program runs plans on MPI.")
reshard_package(libreshard0 libs "" "redistribution of sharded tensors - shared library"
  "${what}\n.\nThis package has the C library, which also runs plans over a communicator of\n\
the calling program.")
reshard_package(libreshard-dev libdevel "libreshard0 (= ${PROJECT_VERSION})"
  "redistribution of sharded tensors - development files"
  "${what}\n.\nThis package has what programs that use the C library are built with.")
reshard_package(libreshard-mpi0 libs "libreshard0 (= ${PROJECT_VERSION})"
  "redistribution of sharded tensors - shared libraries for MPI"
  "${what}\n.\nThis package has the C libraries that run plans on a communicator of Open\n\
MPI or of MPICH.")
reshard_package(libreshard-mpi-dev libdevel
  "libreshard-dev (= ${PROJECT_VERSION}), libreshard-mpi0 (= ${PROJECT_VERSION})"
  "redistribution of sharded tensors - development files for MPI"
  "${what}\n.\nThis package has what MPI programs that use the C libraries are built with.")
# Not needed for every use, yet `mpirun` is what the modules are run with.
set(CPACK_DEBIAN_RESHARD-MPI_PACKAGE_RECOMMENDS "openmpi-bin | mpich")
reshard_package(libreshard-nccl0 libs "libreshard0 (= ${PROJECT_VERSION})"
  "redistribution of sharded tensors - shared library for NCCL"
  "${what}\n.\nThis package has the C library that runs plans on GPUs, over an NCCL\n\
communicator of the calling program.")
reshard_package(libreshard-nccl-dev libdevel
  "libreshard-dev (= ${PROJECT_VERSION}), libreshard-nccl0 (= ${PROJECT_VERSION})"
  "redistribution of sharded tensors - development files for NCCL"
  "${what}\n.\nThis package has what NCCL programs that use the C library are built with.")

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_RESHARD_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_RESHARD_VERSION ${PROJECT_VERSION})
set(CPACK_RESHARD_CONTACT ${RESHARD_CONTACT})
include(CPack)
