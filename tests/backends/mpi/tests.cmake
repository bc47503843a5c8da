# SPDX-License-Identifier: BSD-3-Clause
# Tests under mpirun, once per implementation of MPI that was found: N processes on however few
# cores there are. As root, in a container or a chroot with nothing but /proc mounted.

# mpi_test(NAME FLAVOUR COMMAND...)
function(mpi_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 PROCESSORS 2 LABELS mpi
    ENVIRONMENT "${RESHARD_MPI_ENVIRONMENT}")
endfunction()

# mpi_tests(FLAVOUR PARTS PROCESSES LAUNCHER...): all tests with one implementation.
function(mpi_tests flavour parts processes)
  add_executable(test_${flavour}
    tests/backends/mpi/mpi_main.cpp
    tests/backends/mpi/test_mpi_runs.cpp
    tests/backends/mpi/test_mpi_world.cpp)
  compile_quickly(test_${flavour})
  target_link_libraries(test_${flavour} PRIVATE ${parts} reshard_conformance reshard_flags fmt::fmt
    Catch2::Catch2WithMain)
  foreach(count IN LISTS processes)
    mpi_test(${flavour}_${count} ${ARGN} -np ${count} $<TARGET_FILE:test_${flavour}>)
  endforeach()
  mpi_test(${flavour}_failures ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/backends/mpi/check_failures.py $<TARGET_FILE:mpi_failing> ${ARGN})
  set_tests_properties(${flavour}_failures PROPERTIES PROCESSORS 1)  # waits most of its time
endfunction()

if(RESHARD_HAS_MPI)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_executable(mpi_failing tests/backends/mpi/mpi_failing.cpp)
  target_link_libraries(mpi_failing PRIVATE reshard_backends reshard_core reshard_flags)
  if(RESHARD_OPENMPI_LAUNCHER)
    mpi_tests(openmpi reshard_mpi_parts "${RESHARD_TEST_PROCESSES}" ${RESHARD_OPENMPI_LAUNCHER})
  endif()
  if(RESHARD_MPICH_LAUNCHER)
    # MPICH polls: more processes than cores take a minute.
    mpi_tests(mpich reshard_mpich_parts "1;2;4" ${RESHARD_MPICH_LAUNCHER})
    foreach(world 2 4)
      mpi_test(conformance_mpich_${world} ${RESHARD_MPICH_LAUNCHER} -np ${world}
        $<TARGET_FILE:conformance> mpi --world ${world} ${mpi_draws})
    endforeach()
  endif()
endif()
