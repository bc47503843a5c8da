# SPDX-License-Identifier: BSD-3-Clause
# What reshard is built from: Debian 12 packages (tools/bootstrap.sh installs them), each for work
# that is not what reshard exists for.
find_package(fmt REQUIRED)            # text formatting: g++ 12 has no <format>
find_package(nlohmann_json REQUIRED)  # JSON in and out; kept out of our headers
find_package(CLI11 REQUIRED)          # the command line
find_package(Eigen3 REQUIRED)         # half and bfloat16, vectorised element arithmetic
find_package(pugixml REQUIRED)        # NCCL's topology files, pages; small, expands no entities
find_package(Threads REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)  # XXH3-128 digests
find_library(XXHASH_LIBRARY xxhash REQUIRED)

# A wheel is installed where none of these may be: libreshard.so then has them inside, from their
# archives or headers, and the C++ runtime too.
option(RESHARD_STANDALONE "Build libreshard.so to need the C library alone" OFF)
set(RESHARD_FMT fmt::fmt)
set(RESHARD_PUGIXML pugixml::pugixml)
if(RESHARD_STANDALONE)
  set(RESHARD_FMT fmt::fmt-header-only)  # Debian has no archive of it
  set(RESHARD_PUGIXML pugixml::static)
  find_library(XXHASH_ARCHIVE libxxhash.a REQUIRED)
  set(XXHASH_LIBRARY ${XXHASH_ARCHIVE})
  set(RESHARD_RUNTIME_OPTIONS -static-libstdc++ -static-libgcc)
endif()

# The backends' packages are found or left out, with one line that says which: what is too old or
# broken is left out like what is not there.
option(RESHARD_CUDA "Build the CUDA backend where the CUDA Toolkit is found" ON)
option(RESHARD_NCCL "Build the NCCL backend where the CUDA Toolkit and nccl.h are found" ON)
option(RESHARD_MPI "Build the MPI backend where MPI is found" ON)
set(RESHARD_LEAST_CUDA 12.0 CACHE STRING "The oldest CUDA Toolkit that is taken")  # -std=c++20
set(RESHARD_LEAST_NCCL 2.18 CACHE STRING "The oldest NCCL that is taken")  # ncclCommSplit

# CUDA: the compiler, not only the headers. CMAKE_CUDA_ARCHITECTURES chooses other GPUs.
set(RESHARD_HAS_CUDA OFF)
set(missing "CUDA Toolkit not found or RESHARD_CUDA=OFF")
if(RESHARD_CUDA)
  include(CheckLanguage)
  include(CheckSourceCompiles)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    set(missing "nvcc of the CUDA Toolkit ${CUDAToolkit_VERSION} does not work")
  elseif(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_LESS RESHARD_LEAST_CUDA)
    set(missing "the CUDA Toolkit ${CUDAToolkit_VERSION} is older than ${RESHARD_LEAST_CUDA}")
  elseif(CUDAToolkit_FOUND)
    enable_language(CUDA)
    # nvcc has had it since 12.0, CMake 3.25 does not know
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    set(CMAKE_REQUIRED_FLAGS -std=c++20)
    check_source_compiles(CUDA "#include <span>\n#include <thrust/version.h>\n\
__global__ void kernel(int* p) { *p = 1; }\nint main() {}" RESHARD_NVCC_WORKS)
    unset(CMAKE_REQUIRED_FLAGS)
    set(RESHARD_HAS_CUDA ${RESHARD_NVCC_WORKS})
    set(missing "nvcc ${CUDAToolkit_VERSION} does not compile C++20 with Thrust here")
  endif()
endif()
if(RESHARD_HAS_CUDA)
  message(STATUS "reshard: CUDA backend, with the CUDA Toolkit ${CUDAToolkit_VERSION}")
else()
  message(STATUS "reshard: no CUDA backend (${missing}); everything else works without it")
endif()
# Thrust alone, from Debian's libthrust-dev if need be, runs the GPU's kernels on the host in tests.
find_path(THRUST_INCLUDE thrust/version.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl)
if(NOT THRUST_INCLUDE)
  message(STATUS "reshard: Thrust not found; the kernels of the CUDA backend are not tested on the "
    "host (apt install libthrust-dev)")
endif()

# NCCL: the header only. The library is opened when it is first used, so that a program built here
# starts everywhere; where it lies beside that header it is looked for after the system's places.
set(RESHARD_HAS_NCCL OFF)
set(missing "nccl.h or the CUDA backend not found, or RESHARD_NCCL=OFF")
if(RESHARD_NCCL AND RESHARD_HAS_CUDA)
  find_path(NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ENV NCCL_ROOT ENV NCCL_ROOT_DIR ${NCCL_ROOT}
    ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  if(NCCL_INCLUDE)
    file(STRINGS ${NCCL_INCLUDE}/nccl.h lines REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
    string(REPLACE ";" "." version "${lines}")
    set(missing "${NCCL_INCLUDE}/nccl.h is of ${version}, older than ${RESHARD_LEAST_NCCL}")
    if(NOT version VERSION_LESS RESHARD_LEAST_NCCL)
      set(RESHARD_HAS_NCCL ON)
      find_file(NCCL_LIBRARY_FILE NAMES libnccl.so.2 NO_DEFAULT_PATH
        HINTS ${NCCL_INCLUDE}/../lib ${NCCL_INCLUDE}/../lib64)
    endif()
  endif()
endif()
if(RESHARD_HAS_NCCL)
  message(STATUS "reshard: NCCL backend, with ${NCCL_INCLUDE}/nccl.h")
else()
  message(STATUS "reshard: no NCCL backend (${missing})")
endif()

# MPI: the C interface. Open MPI and MPICH do not mix, so each that is there is asked by its own
# compiler wrapper, and where that has the plain name its header says which it is.
#
# find_mpi(FLAVOUR SYMBOL LAUNCHERS WRAPPERS...): the imported target reshard_FLAVOUR_library from
# the first wrapper whose mpi.h defines SYMBOL; RESHARD_FLAVOUR_LAUNCHER starts its processes.
include(CheckSymbolExists)
function(find_mpi flavour symbol launchers)
  foreach(name IN LISTS ARGN)
    find_program(RESHARD_WRAPPER_${name} ${name})
    mark_as_advanced(RESHARD_WRAPPER_${name})
    if(NOT RESHARD_WRAPPER_${name})
      continue()
    endif()
    execute_process(COMMAND ${RESHARD_WRAPPER_${name}} -show OUTPUT_VARIABLE line ERROR_QUIET
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    separate_arguments(words UNIX_COMMAND "${line}")
    set(libraries ${words})
    list(FILTER words INCLUDE REGEX "^-I")
    list(TRANSFORM words REPLACE "^-I" "" OUTPUT_VARIABLE CMAKE_REQUIRED_INCLUDES)
    list(FILTER libraries INCLUDE REGEX "^-(L|l|Wl,-rpath)")
    set(CMAKE_REQUIRED_LIBRARIES ${libraries})
    check_symbol_exists(${symbol} mpi.h RESHARD_${name}_IS_${flavour})
    check_symbol_exists(MPI_Comm_create_group mpi.h RESHARD_${name}_IS_MPI3)  # and that it links
    if(RESHARD_${name}_IS_${flavour} AND RESHARD_${name}_IS_MPI3)
      add_library(reshard_${flavour}_library INTERFACE IMPORTED GLOBAL)
      target_include_directories(reshard_${flavour}_library INTERFACE ${CMAKE_REQUIRED_INCLUDES})
      target_link_libraries(reshard_${flavour}_library INTERFACE ${libraries})
      target_compile_definitions(reshard_${flavour}_library INTERFACE OMPI_SKIP_MPICXX
        MPICH_SKIP_MPICXX)
      find_program(RESHARD_MPIRUN_${flavour} NAMES ${launchers})
      mark_as_advanced(RESHARD_MPIRUN_${flavour})
      list(APPEND RESHARD_MPI_FLAVOURS ${flavour})
      list(APPEND RESHARD_MPI_WRAPPERS ${RESHARD_WRAPPER_${name}})
      set(RESHARD_MPICC_${flavour} ${RESHARD_WRAPPER_${name}} CACHE INTERNAL "")
      return(PROPAGATE RESHARD_MPI_FLAVOURS RESHARD_MPI_WRAPPERS)
    endif()
  endforeach()
endfunction()
if(RESHARD_MPI)
  find_mpi(mpi OPEN_MPI "mpirun.openmpi;mpirun" mpicc.openmpi mpicc)
  find_mpi(mpich MPICH_VERSION "mpirun.mpich;mpiexec.hydra;mpirun" mpicc.mpich mpicc)
endif()
if(RESHARD_MPI_FLAVOURS)
  string(JOIN " and " found ${RESHARD_MPI_WRAPPERS})
  message(STATUS "reshard: MPI backend, with ${found}")
else()
  message(STATUS "reshard: no MPI backend (no MPI 3 found that works, or RESHARD_MPI=OFF; "
    "apt install libopenmpi-dev openmpi-bin)")
endif()
