# SPDX-License-Identifier: BSD-3-Clause
# The installed tree, the packages, what is configured, and reshard inside another project. Each
# works on copies in temporary folders.
if(RESHARD_INSTALL)
  set(install_mpi)
  if(RESHARD_HAS_OPENMPI AND RESHARD_OPENMPI_MPIRUN)
    set(install_mpi --mpicc ${RESHARD_OPENMPI_WRAPPER} --mpiexec ${RESHARD_OPENMPI_MPIRUN})
  endif()
  add_test(NAME install COMMAND ${Python3_EXECUTABLE} -B
    ${PROJECT_SOURCE_DIR}/tests/install/check_install.py --build ${PROJECT_BINARY_DIR} --cmake
    ${CMAKE_COMMAND} --sanitize=${RESHARD_SANITIZE} ${install_mpi})
  add_test(NAME packages COMMAND ${Python3_EXECUTABLE} -B
    ${PROJECT_SOURCE_DIR}/tests/install/check_packages.py --build ${PROJECT_BINARY_DIR} --cpack
    ${CMAKE_CPACK_COMMAND} --sanitize=${RESHARD_SANITIZE})
  # The consumer is built by what built reshard: a machine may have Ninja and no make.
  set_tests_properties(install packages PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300
    ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR}")
endif()
add_test(NAME left_out COMMAND ${Python3_EXECUTABLE} -B
  ${PROJECT_SOURCE_DIR}/tests/install/check_left_out.py --cmake ${CMAKE_COMMAND})
add_test(NAME subdirectory COMMAND ${Python3_EXECUTABLE} -B
  ${PROJECT_SOURCE_DIR}/tests/install/check_subdirectory.py --cmake ${CMAKE_COMMAND})
