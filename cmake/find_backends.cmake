# SPDX-License-Identifier: BSD-3-Clause
# What the backends are built from. Each is found or left out, with one line that says which: what
# is too old or broken is left out like what is not there.
if(NOT DEFINED RESHARD_LEAST_CUDA)
  set(RESHARD_LEAST_CUDA 12.0)  # nvcc -std=c++20
endif()
if(NOT DEFINED RESHARD_LEAST_NCCL)
  set(RESHARD_LEAST_NCCL 2.18)  # ncclCommSplit
endif()

# CUDA: the compiler, not only the headers. Code for the GPUs of the last years; set
# CMAKE_CUDA_ARCHITECTURES for others.
set(RESHARD_HAS_CUDA OFF)
set(cuda_missing "CUDA Toolkit not found or RESHARD_CUDA=OFF")
if(RESHARD_CUDA)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    set(cuda_missing "nvcc of the CUDA Toolkit ${CUDAToolkit_VERSION} does not work")
  elseif(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_LESS RESHARD_LEAST_CUDA)
    set(cuda_missing
      "the CUDA Toolkit ${CUDAToolkit_VERSION} is older than ${RESHARD_LEAST_CUDA}")
  elseif(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    enable_language(CUDA)
    # nvcc has had it since 12.0, CMake 3.25 does not know
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    include(CheckSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -std=c++20)
    check_source_compiles(CUDA "#include <span>\n#include <thrust/version.h>\n\
__global__ void kernel(int* p) { *p = 1; }\nint main() {}" RESHARD_NVCC_WORKS)
    unset(CMAKE_REQUIRED_FLAGS)
    set(RESHARD_HAS_CUDA ${RESHARD_NVCC_WORKS})
    set(cuda_missing "nvcc ${CUDAToolkit_VERSION} does not compile C++20 with Thrust here")
  endif()
endif()
if(RESHARD_HAS_CUDA)
  message(STATUS "reshard: CUDA backend, with the CUDA Toolkit ${CUDAToolkit_VERSION}")
else()
  message(STATUS
    "reshard: no CUDA backend (${cuda_missing}); everything else works without it")
endif()

# NCCL: the header only. The library is opened when it is first used, so that a program built here
# starts everywhere.
set(RESHARD_HAS_NCCL OFF)
set(nccl_missing "nccl.h or the CUDA backend not found, or RESHARD_NCCL=OFF")
if(RESHARD_NCCL AND RESHARD_HAS_CUDA)
  find_path(NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ENV NCCL_ROOT ENV NCCL_ROOT_DIR ${NCCL_ROOT}
    ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  if(NCCL_INCLUDE)
    file(STRINGS ${NCCL_INCLUDE}/nccl.h lines REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
    string(REPLACE ";" "." nccl_version "${lines}")
    if(nccl_version VERSION_LESS RESHARD_LEAST_NCCL)
      set(nccl_missing "${NCCL_INCLUDE}/nccl.h is of ${nccl_version}, older than \
${RESHARD_LEAST_NCCL}")
    else()
      set(RESHARD_HAS_NCCL ON)
    endif()
  endif()
endif()
if(RESHARD_HAS_NCCL)
  message(STATUS "reshard: NCCL backend, with ${NCCL_INCLUDE}/nccl.h")
else()
  message(STATUS "reshard: no NCCL backend (${nccl_missing})")
endif()

# MPI: the C interface; the C++ bindings are gone from the standard. Open MPI and MPICH do not mix,
# so each that is there is asked by its own compiler wrapper, and where that has the plain name its
# header says which it is.
include(CheckSymbolExists)
# reshard_find_mpi(FLAVOUR TARGET SYMBOL WRAPPERS...): an imported target from the first wrapper
# whose mpi.h defines SYMBOL.
function(reshard_find_mpi flavour target symbol)
  set(RESHARD_HAS_${flavour} OFF PARENT_SCOPE)
  foreach(name ${ARGN})
    find_program(RESHARD_WRAPPER_${name} ${name})
    mark_as_advanced(RESHARD_WRAPPER_${name})
    if(NOT RESHARD_WRAPPER_${name})
      continue()
    endif()
    execute_process(COMMAND ${RESHARD_WRAPPER_${name}} -show OUTPUT_VARIABLE line
      ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      continue()
    endif()
    separate_arguments(words UNIX_COMMAND "${line}")
    set(includes ${words})
    list(FILTER includes INCLUDE REGEX "^-I")
    list(TRANSFORM includes REPLACE "^-I" "")
    set(libraries ${words})
    list(FILTER libraries INCLUDE REGEX "^-(L|l|Wl,-rpath)")
    set(CMAKE_REQUIRED_INCLUDES ${includes})
    set(CMAKE_REQUIRED_LIBRARIES ${libraries})
    check_symbol_exists(${symbol} mpi.h RESHARD_${name}_IS_${flavour})
    # Of MPI 3; that it links shows a library that works.
    check_symbol_exists(MPI_Comm_create_group mpi.h RESHARD_${name}_IS_MPI3)
    if(NOT RESHARD_${name}_IS_${flavour} OR NOT RESHARD_${name}_IS_MPI3)
      continue()
    endif()
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${includes}"
      INTERFACE_LINK_LIBRARIES "${libraries}"
      INTERFACE_COMPILE_DEFINITIONS "OMPI_SKIP_MPICXX;MPICH_SKIP_MPICXX")
    set(RESHARD_HAS_${flavour} ON PARENT_SCOPE)
    set(RESHARD_${flavour}_WRAPPER ${RESHARD_WRAPPER_${name}} PARENT_SCOPE)
    return()
  endforeach()
endfunction()
set(RESHARD_HAS_MPI OFF)
set(RESHARD_HAS_OPENMPI OFF)
set(RESHARD_HAS_MPICH OFF)
if(RESHARD_MPI)
  reshard_find_mpi(OPENMPI reshard_openmpi OPEN_MPI mpicc.openmpi mpicc)
  reshard_find_mpi(MPICH reshard_mpich_library MPICH_VERSION mpicc.mpich mpicc)
endif()
# How their processes are started, for the tests: on however few cores there are, as root too.
set(RESHARD_OPENMPI_LAUNCHER)
set(RESHARD_MPICH_LAUNCHER)
if(RESHARD_HAS_OPENMPI)
  find_program(RESHARD_OPENMPI_MPIRUN NAMES mpirun.openmpi mpirun)
  mark_as_advanced(RESHARD_OPENMPI_MPIRUN)
  if(RESHARD_OPENMPI_MPIRUN)
    set(RESHARD_OPENMPI_LAUNCHER ${RESHARD_OPENMPI_MPIRUN} --oversubscribe)
  endif()
endif()
if(RESHARD_HAS_MPICH)
  find_program(RESHARD_MPICH_MPIRUN NAMES mpirun.mpich mpiexec.hydra mpirun)
  mark_as_advanced(RESHARD_MPICH_MPIRUN)
  if(RESHARD_MPICH_MPIRUN)
    set(RESHARD_MPICH_LAUNCHER ${RESHARD_MPICH_MPIRUN})
  endif()
endif()
# For tests. Both MPI libraries keep memory to the end, from modules that are unloaded by then, so
# that no suppression could name them; under ASan all but leaks is looked at.
set(RESHARD_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1)
if(RESHARD_HAS_OPENMPI OR RESHARD_HAS_MPICH)
  set(RESHARD_HAS_MPI ON)
  string(JOIN " and " mpi_found ${RESHARD_OPENMPI_WRAPPER} ${RESHARD_MPICH_WRAPPER})
  message(STATUS "reshard: MPI backend, with ${mpi_found}")
else()
  message(STATUS
    "reshard: no MPI backend (no MPI 3 found that works, or RESHARD_MPI=OFF; "
    "apt install libopenmpi-dev openmpi-bin)")
endif()

# Thrust without a GPU: the headers of the CUDA Toolkit, else Debian's libthrust-dev. Its host
# system runs the GPU's kernels in the tests.
find_path(THRUST_INCLUDE thrust/version.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl)
if(NOT THRUST_INCLUDE)
  message(STATUS
    "reshard: Thrust not found; the kernels of the CUDA backend are not tested on the host "
    "(apt install libthrust-dev)")
endif()
