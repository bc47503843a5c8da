# SPDX-License-Identifier: BSD-3-Clause
# The C API: from C, from C++, from Python, and its list of names.
reshard_test(test_capi SOURCES
  tests/capi/capi_executor.cpp
  tests/capi/test_capi_command.cpp
  tests/capi/test_capi_conformance.cpp
  tests/capi/test_capi_errors.cpp
  tests/capi/test_capi_questions.cpp
  tests/capi/test_capi_rings.cpp
  LINKS reshard_shared reshard_conformance reshard_core Threads::Threads)

# reshard.hpp in a program that has nothing of reshard but the installed headers and the library.
reshard_test(test_hpp SOURCES tests/capi/test_hpp.cpp LINKS reshard_shared)
set_target_properties(test_hpp PROPERTIES CXX_STANDARD 17)
target_compile_options(test_hpp PRIVATE -Wpedantic)

add_executable(capi_from_c tests/capi/plan_and_run.c)
target_compile_options(capi_from_c PRIVATE -std=c99 -pedantic -Wall -Wextra -Wconversion -Werror)
target_link_libraries(capi_from_c PRIVATE reshard_shared reshard_flags)
set_target_properties(capi_from_c PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
if(RESHARD_SANITIZE)
  # the sanitizers' runtime for C++ is needed by the library
  set_target_properties(capi_from_c PROPERTIES LINKER_LANGUAGE CXX)
endif()
add_test(NAME capi_from_c COMMAND capi_from_c)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME capi_symbols COMMAND ${Python3_EXECUTABLE}
  ${PROJECT_SOURCE_DIR}/tests/capi/check_symbols.py --library $<TARGET_FILE:reshard_shared> --names
  ${PROJECT_SOURCE_DIR}/tests/capi/reshard.symbols --header
  ${PROJECT_SOURCE_DIR}/tools/capi/reshard.h ${PROJECT_SOURCE_DIR}/tools/capi/reshard_rings.h)
set_tests_properties(capi_symbols PROPERTIES SKIP_RETURN_CODE 77)

# The page's C++ by every compiler there is.
add_test(NAME capi_cpp_page COMMAND ${Python3_EXECUTABLE} -B
  ${PROJECT_SOURCE_DIR}/tests/capi/check_cpp_page.py --include ${PROJECT_BINARY_DIR}/include
  --library $<TARGET_FILE:reshard_shared> --main $<TARGET_FILE:Catch2::Catch2WithMain>
  --sanitize=${RESHARD_SANITIZE})
set_tests_properties(capi_cpp_page PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)

# On MPI: run_on_mpi.c against each that was found.
function(capi_mpi_test flavour library mpi launcher)
  add_executable(capi_on_${flavour} tests/capi/run_on_mpi.c)
  target_compile_options(capi_on_${flavour} PRIVATE -std=c99 -Wall -Wextra -Werror)
  target_link_libraries(capi_on_${flavour} PRIVATE ${library} ${mpi})
  set_target_properties(capi_on_${flavour} PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
  if(RESHARD_SANITIZE)
    target_link_libraries(capi_on_${flavour} PRIVATE reshard_flags)
    set_target_properties(capi_on_${flavour} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  add_test(NAME capi_on_${flavour} COMMAND ${launcher} ${ARGN} -np 4
    $<TARGET_FILE:capi_on_${flavour}>)
  # As root in a container, on fewer cores than ranks.
  set_tests_properties(capi_on_${flavour} PROPERTIES ENVIRONMENT "${RESHARD_MPI_ENVIRONMENT}"
    PROCESSORS 2 TIMEOUT 120)
  add_test(NAME capi_symbols_${flavour} COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/capi/check_symbols.py --library $<TARGET_FILE:${library}> --names
    ${PROJECT_SOURCE_DIR}/tests/capi/reshard_mpi.symbols --header
    ${PROJECT_SOURCE_DIR}/tools/capi/reshard_mpi.h)
  set_tests_properties(capi_symbols_${flavour} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
if(RESHARD_OPENMPI_MPIRUN)
  capi_mpi_test(openmpi reshard_mpi_shared reshard_openmpi ${RESHARD_OPENMPI_MPIRUN}
    --oversubscribe)
endif()
if(RESHARD_MPICH_MPIRUN)
  capi_mpi_test(mpich reshard_mpich_shared reshard_mpich_library ${RESHARD_MPICH_MPIRUN})
endif()

# On NCCL: its header in any program; the library as far as it goes without a communicator.
add_executable(capi_nccl_refusals tests/capi/refuse_without_nccl.c)
target_compile_options(capi_nccl_refusals PRIVATE -std=c99 -pedantic -Wall -Wextra -Wconversion
  -Werror)
set_target_properties(capi_nccl_refusals PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
if(RESHARD_HAS_NCCL)
  target_link_libraries(capi_nccl_refusals PRIVATE reshard_nccl_shared reshard_flags)
  target_compile_definitions(capi_nccl_refusals PRIVATE RESHARD_HAS_NCCL=1)
  add_test(NAME capi_symbols_nccl COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/capi/check_symbols.py --library $<TARGET_FILE:reshard_nccl_shared>
    --names ${PROJECT_SOURCE_DIR}/tests/capi/reshard_nccl.symbols --header
    ${PROJECT_SOURCE_DIR}/tools/capi/reshard_nccl.h)
  set_tests_properties(capi_symbols_nccl PROPERTIES SKIP_RETURN_CODE 77)
  # On GPUs, where there are any: with the shared CUDA runtime, as frameworks have it, beside the
  # library's own.
  add_executable(capi_on_nccl tests/capi/run_on_nccl.cpp)
  target_include_directories(capi_on_nccl SYSTEM PRIVATE ${NCCL_INCLUDE})
  target_link_libraries(capi_on_nccl PRIVATE reshard_nccl_shared CUDA::cudart Threads::Threads
    ${CMAKE_DL_LIBS} reshard_flags)
  if(NCCL_LIBRARY_FILE)
    target_compile_definitions(capi_on_nccl PRIVATE "RESHARD_NCCL_FILE=\"${NCCL_LIBRARY_FILE}\"")
  endif()
  add_test(NAME capi_on_nccl COMMAND capi_on_nccl)
  set_tests_properties(capi_on_nccl PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
else()
  target_link_libraries(capi_nccl_refusals PRIVATE reshard_shared reshard_flags)
endif()
if(RESHARD_SANITIZE)
  set_target_properties(capi_nccl_refusals PROPERTIES LINKER_LANGUAGE CXX)
endif()
add_test(NAME capi_nccl_refusals COMMAND capi_nccl_refusals)
set_tests_properties(capi_nccl_refusals PROPERTIES SKIP_RETURN_CODE 77
  ENVIRONMENT_MODIFICATION "RESHARD_NCCL_LIBRARY=unset:")

add_test(NAME capi_example COMMAND ${Python3_EXECUTABLE}
  ${PROJECT_SOURCE_DIR}/tests/capi/check_example.py --library $<TARGET_FILE:reshard_shared>
  --sanitize=${RESHARD_SANITIZE})
set_tests_properties(capi_example PROPERTIES SKIP_RETURN_CODE 77)
