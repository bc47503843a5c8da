# SPDX-License-Identifier: BSD-3-Clause
# Tests: one program for each folder of tests/core and tests/sim, which mirror the parts, with every
# case registered in CTest; programs that run under mpirun; scripts. A test that needs something the
# machine lacks is reported as skipped (exit code 77), with the reason in the log.
enable_testing()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(Catch2 REQUIRED)
include(Catch)

# Operators with values that the program does not compute.
reshard_part(rare_operators FOLDER tests/support/operators LINKS operators)
# Code that tests share, linked with all of core and sim; and the one body of conformance tests for
# all executors.
file(GLOB support CONFIGURE_DEPENDS tests/support/*.cpp)
reshard_part(test_support SOURCES ${support} tests/conformance/conformance.cpp
  LINKS rare_operators jobs digest host models text PACKAGES Threads::Threads)
# Stand-ins: the GPU's kernels compiled for the host; a GPU made of host memory, with streams that
# run as late or as early as events allow; and an NCCL that checks how it is used.
if(THRUST_INCLUDE)
  reshard_part(standins FOLDER tests/support/standins LINKS nccl cuda_plans test_support
    SOURCES backends/device/kernels/kernels_host.cpp)
  target_compile_definitions(reshard_standins PRIVATE
    THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP INTERFACE RESHARD_HAS_STANDINS=1)
  target_include_directories(reshard_standins SYSTEM PRIVATE ${THRUST_INCLUDE})
  set(standins reshard_standins)
endif()

# catch_program(NAME FOLDER LINKS...) makes a program of tests; test_folder(FOLDER LINKS...) also
# registers its cases in CTest.
function(catch_program name folder)
  sources_of(sources ${folder} EXCEPT programs/ mpi_failing.cpp)
  reshard_program(${name} "${sources}" ${ARGN} reshard_test_support Catch2::Catch2WithMain)
  compile_together(${name} ${sources})
  if(NOT name STREQUAL test_sweep)  # it spends more time in its own code than in what it tests
    compile_quickly(${name})
  endif()
endfunction()
function(test_folder folder)
  cmake_path(GET folder FILENAME name)
  catch_program(test_${name} ${folder} ${ARGN})
  # A name that matches no test must not pass. A test with a ';' in its name would be such a case.
  catch_discover_tests(test_${name} TEST_PREFIX "test_${name}: " EXTRA_ARGS --warn NoTests
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()
# run_test(NAME COMMAND...), python_test(NAME SCRIPT ARGUMENTS...)
function(run_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
function(python_test name script)
  run_test(${name} ${Python3_EXECUTABLE} -B ${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "CMAKE_GENERATOR=${CMAKE_GENERATOR};\
RESHARD_BUILD=${PROJECT_BINARY_DIR};PYTHONPATH=${PROJECT_SOURCE_DIR}/tools/python;\
RESHARD_LIBRARY=$<TARGET_FILE:reshard_shared>")
endfunction()
# on_mpi(NAME): settings for tests under mpirun. They also work as root, in a container or a chroot
# with only /proc mounted, and on fewer cores than ranks. Both MPI libraries keep memory until the
# end. It was allocated by modules that are unloaded by then, so no suppression can name them: ASan
# does not look for leaks.
function(on_mpi name)
  set_tests_properties(${name} PROPERTIES PROCESSORS 2 LABELS mpi)
  # In addition to the variables that python_test sets.
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1)
endfunction()

# ---- programs ------------------------------------------------------------------------------------
file(GLOB folders CONFIGURE_DEPENDS tests/core/* tests/sim/*)
foreach(folder IN LISTS folders ITEMS tests/sweep tests/backends/host)
  test_folder(${folder})
endforeach()
test_folder(tests/backends/launch reshard_launch)
test_folder(tests/tools/cli reshard_tools)
test_folder(tests/capi reshard_shared)
if(THRUST_INCLUDE)
  foreach(folder cuda device nccl)
    test_folder(tests/backends/${folder} reshard_standins)
  endforeach()
endif()
if(NCCL_LIBRARY_FILE)
  test_folder(tests/backends/nccl_library reshard_nccl_library)
endif()
# capi_program(NAME SOURCE LINKS...): includes only the installed headers, from C or from the oldest
# C++ that they support.
function(capi_program name source)
  reshard_program(${name} tests/capi/programs/${source} ${ARGN})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 17 C_STANDARD 99 C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wpedantic)
endfunction()
capi_program(test_hpp test_hpp.cpp reshard_shared Catch2::Catch2WithMain)
run_test(test_hpp test_hpp)
capi_program(capi_from_c plan_and_run.c reshard_shared)
run_test(capi_from_c capi_from_c)
capi_program(capi_nccl_refusals refuse_without_nccl.c reshard_shared)
run_test(capi_nccl_refusals ${CMAKE_COMMAND} -E env --unset=RESHARD_NCCL_LIBRARY
  $<TARGET_FILE:capi_nccl_refusals>)
if(RESHARD_HAS_NCCL)
  target_link_libraries(capi_nccl_refusals PRIVATE reshard_nccl_shared)
  target_compile_definitions(capi_nccl_refusals PRIVATE RESHARD_HAS_NCCL=1)
  # This program has the shared CUDA runtime, as frameworks do, in addition to the library's own
  # copy.
  reshard_program(capi_on_nccl tests/capi/programs/run_on_nccl.cpp reshard_nccl_shared
    reshard_nccl_header CUDA::cudart Threads::Threads ${CMAKE_DL_LIBS})
  run_test(capi_on_nccl capi_on_nccl)
endif()

# ---- executors -----------------------------------------------------------------------------------
# The sweep moves the data of all small cases in the store, test_cuda of many of them by the CUDA
# backend. With sanitizers, each runs a tenth of the cases.
reshard_program(conformance tests/conformance/conformance_main.cpp reshard_backends
  reshard_test_support ${standins})
compile_quickly(conformance)
run_test(conformance_local conformance local --small-cases --every 5)
run_test(conformance_cuda conformance cuda --small-cases --every 32)
if(THRUST_INCLUDE)
  run_test(conformance_cuda_on_host conformance cuda-on-host --small-cases --every 40)
  run_test(conformance_nccl_on_standin conformance nccl-on-standin --small-cases --every 200)
endif()
foreach(world 1 2 4 8)
  run_test(conformance_nccl_${world} conformance nccl --world ${world} --draws 200)
endforeach()
if(NOT RESHARD_HAS_MPI)
  run_test(conformance_mpi conformance mpi --world 2)
else()
  reshard_program(mpi_failing tests/backends/mpi/mpi_failing.cpp reshard_backends reshard_planners)
endif()
foreach(flavour IN LISTS RESHARD_MPI_FLAVOURS)
  if(NOT RESHARD_MPIRUN_${flavour})
    continue()
  endif()
  set(launcher ${RESHARD_MPIRUN_${flavour}})
  set(processes 1 2 4)
  if(flavour STREQUAL mpi)  # MPICH polls: with more processes than cores it takes a minute
    list(APPEND launcher --oversubscribe)
    list(APPEND processes 7 8)
  endif()
  catch_program(test_${flavour} tests/backends/mpi reshard_${flavour}_parts)
  capi_program(capi_on_${flavour} run_on_mpi.c reshard_${flavour}_shared reshard_${flavour}_library)
  run_test(capi_on_${flavour} ${launcher} -np 4 $<TARGET_FILE:capi_on_${flavour}>)
  python_test(${flavour}_failures tests/backends/mpi/check_failures.py $<TARGET_FILE:mpi_failing>
    ${launcher})
  set(names capi_on_${flavour} ${flavour}_failures)
  foreach(count IN LISTS processes)
    run_test(${flavour}_${count} ${launcher} -np ${count} $<TARGET_FILE:test_${flavour}>)
    run_test(conformance_${flavour}_${count} ${launcher} -np ${count} $<TARGET_FILE:conformance> mpi
      --world ${count} --draws 4000)
    list(APPEND names ${flavour}_${count} conformance_${flavour}_${count})
  endforeach()
  on_mpi("${names}")
endforeach()

# ---- scripts: they run what was built, or read the sources ---------------------------------------
file(GLOB scripts CONFIGURE_DEPENDS tests/*/check_*.py tests/tools/*.py tests/tidy/tidy.py)
if(RESHARD_SANITIZE)
  # With sanitizers, programs need more memory and descriptors than the limits that these scripts
  # set, and the sanitizers' runtime must be loaded before Python's libraries.
  list(FILTER scripts EXCLUDE REGEX "(bad_inputs|replay_limits|files|check_outputs|check_demo).py")
else()
  python_test(near_the_limit tests/bench/near_the_limit.py --quick)
  python_test(python -m unittest discover -s tests/python)
endif()
foreach(script IN LISTS scripts)
  string(REGEX REPLACE ".*/(check_)?(.*).py" "\\2" name ${script})
  python_test(${name} ${script})
endforeach()
on_mpi("validate_mpirun;validate_jobs")
python_test(golden tests/golden/run.py)
python_test(tidy_self_test tests/tidy/tidy.py --self-test)
python_test(shipped_traces_as_generated tools/traces/generate.py --check)

# ---- fuzz targets: one per text input; tools/check.sh runs each for a short while ----------------
if(RESHARD_FUZZ)
  file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.cpp)
  foreach(target IN LISTS targets)
    cmake_path(GET target STEM name)
    reshard_program(${name} ${target} reshard_jobs reshard_digest reshard_models reshard_text)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
endif()
