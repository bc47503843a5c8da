# SPDX-License-Identifier: BSD-3-Clause
# The packages that reshard is built from, all in Debian 12 (tools/bootstrap.sh installs them). Each
# does work that is not the purpose of reshard.
find_package(fmt REQUIRED)            # text formatting: g++ 12 has no <format>
find_package(nlohmann_json REQUIRED)  # JSON in and out; kept out of our headers
find_package(CLI11 REQUIRED)          # the command line
find_package(Eigen3 REQUIRED)         # half and bfloat16, vectorised element arithmetic
find_package(pugixml REQUIRED)        # NCCL's topology files, pages; small, expands no entities
find_package(ZLIB REQUIRED)           # text compressed by gzip
find_package(Threads REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)  # XXH3-128 digests
set(xxhash xxhash)
set(fmt fmt::fmt)
set(RESHARD_PUGIXML pugixml::pugixml)
set(RESHARD_ZLIB ZLIB::ZLIB)
# A wheel can be installed where none of these are, so its libreshard.so contains them, from their
# archives or headers, and the C++ runtime as well.
option(RESHARD_STANDALONE "Build libreshard.so to need the C library alone" OFF)
if(RESHARD_STANDALONE)
  set(xxhash libxxhash.a)
  set(fmt fmt::fmt-header-only)  # Debian has no archive of it
  set(RESHARD_PUGIXML pugixml::static)
  find_library(RESHARD_ZLIB_ARCHIVE libz.a REQUIRED)
  set(RESHARD_ZLIB ${RESHARD_ZLIB_ARCHIVE})
  set(RESHARD_RUNTIME_OPTIONS -static-libstdc++ -static-libgcc)
endif()
find_library(XXHASH_LIBRARY ${xxhash} REQUIRED)
# Packages that are only headers, or that all parts need; parts name the others.
target_link_libraries(reshard_flags INTERFACE ${fmt} nlohmann_json::nlohmann_json CLI11::CLI11
  Eigen3::Eigen)

# The backends' packages are optional. One line for each states whether it was found; a package that
# is too old or broken counts as missing.
option(RESHARD_CUDA "Build the CUDA backend where the CUDA Toolkit is found" ON)
option(RESHARD_NCCL "Build the NCCL backend where the CUDA Toolkit and nccl.h are found" ON)
option(RESHARD_MPI "Build the MPI backend where MPI is found" ON)
set(RESHARD_LEAST_CUDA 12.0 CACHE STRING "The oldest CUDA Toolkit that is taken")  # -std=c++20
set(RESHARD_LEAST_NCCL 2.18 CACHE STRING "The oldest NCCL that is taken")  # ncclCommSplit
include(CheckLanguage)
include(CheckSourceCompiles)
function(say_backend name found missing)
  if(RESHARD_HAS_${name})
    message(STATUS "reshard: ${name} backend, with ${found}")
  else()
    message(STATUS "reshard: no ${name} backend (${missing}, or RESHARD_${name}=OFF); everything "
      "else works without it")
  endif()
endfunction()

# CUDA requires the compiler, not only the headers. CMAKE_CUDA_ARCHITECTURES selects other GPUs.
if(RESHARD_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "The GPUs that kernels are compiled for")
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL RESHARD_LEAST_CUDA)
    enable_language(CUDA)
    # nvcc has had it since 12.0, but CMake 3.25 does not know that.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    set(CMAKE_REQUIRED_FLAGS -std=c++20)
    check_source_compiles(CUDA "#include <span>\n#include <thrust/version.h>\n\
__global__ void kernel(int* p) { *p = 1; }\nint main() {}" RESHARD_NVCC_WORKS)
    unset(CMAKE_REQUIRED_FLAGS)
    set(RESHARD_HAS_CUDA ${RESHARD_NVCC_WORKS})
  endif()
endif()
say_backend(CUDA "the CUDA Toolkit ${CUDAToolkit_VERSION}" "expected a CUDA Toolkit of \
${RESHARD_LEAST_CUDA} or newer whose nvcc compiles C++20, found '${CUDAToolkit_VERSION}'")
# Thrust alone (Debian's libthrust-dev, if there is no CUDA) runs the GPU's kernels on the host in
# tests.
find_path(THRUST_INCLUDE thrust/version.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl)
if(NOT THRUST_INCLUDE)
  message(STATUS "reshard: Thrust not found; the kernels of the CUDA backend are not tested on the "
    "host (apt install libthrust-dev)")
endif()

# NCCL requires only the header. The library is opened when it is first used, so that a program
# built here starts on machines without it. It is searched for in the system's folders first, then
# next to that header.
if(RESHARD_NCCL AND RESHARD_HAS_CUDA)
  find_path(NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ENV NCCL_ROOT ENV NCCL_ROOT_DIR ${NCCL_ROOT}
    ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  if(NCCL_INCLUDE)
    file(STRINGS ${NCCL_INCLUDE}/nccl.h nccl REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" nccl "${nccl}")
    string(REPLACE ";" "." nccl "${nccl}")
  endif()
  if("${nccl}" VERSION_GREATER_EQUAL RESHARD_LEAST_NCCL)
    set(RESHARD_HAS_NCCL ON)
    find_file(NCCL_LIBRARY_FILE NAMES libnccl.so.2 NO_DEFAULT_PATH
      HINTS ${NCCL_INCLUDE}/../lib ${NCCL_INCLUDE}/../lib64)
    add_library(reshard_nccl_header INTERFACE IMPORTED)
    target_include_directories(reshard_nccl_header INTERFACE ${NCCL_INCLUDE})
    target_compile_definitions(reshard_nccl_header INTERFACE
      "$<$<BOOL:${NCCL_LIBRARY_FILE}>:RESHARD_NCCL_FILE=\"${NCCL_LIBRARY_FILE}\">")
  endif()
endif()
say_backend(NCCL "${NCCL_INCLUDE}/nccl.h" "expected the CUDA backend and the nccl.h of \
${RESHARD_LEAST_NCCL} or newer, found '${nccl}'")

# MPI requires the C interface. Open MPI and MPICH cannot be mixed, so each one that is installed is
# found by its own compiler wrapper; if the wrapper has the plain name, its header shows which one
# it is.
#
# find_mpi(FLAVOUR SYMBOL LAUNCHERS WRAPPERS...): makes the imported target reshard_FLAVOUR_library
# from the first wrapper that links a program of MPI 3 and has an mpi.h that defines SYMBOL.
# RESHARD_MPIRUN_FLAVOUR starts its processes.
function(find_mpi flavour symbol launchers)
  foreach(name IN LISTS ARGN)
    find_program(RESHARD_WRAPPER_${name} ${name})
    if(NOT RESHARD_WRAPPER_${name})
      continue()
    endif()
    execute_process(COMMAND ${RESHARD_WRAPPER_${name}} -show OUTPUT_VARIABLE line ERROR_QUIET
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    separate_arguments(words UNIX_COMMAND "${line}")
    set(CMAKE_REQUIRED_LIBRARIES ${words})
    list(FILTER CMAKE_REQUIRED_LIBRARIES INCLUDE REGEX "^-(L|l|Wl,-rpath)")
    list(FILTER words INCLUDE REGEX "^-I")
    list(TRANSFORM words REPLACE "^-I" "" OUTPUT_VARIABLE CMAKE_REQUIRED_INCLUDES)
    check_source_compiles(C "#include <mpi.h>\n#ifdef ${symbol}\n\
int main(void) { return MPI_Comm_create_group == 0; }\n#endif" RESHARD_${name}_IS_${flavour})
    if(RESHARD_${name}_IS_${flavour})
      set(library reshard_${flavour}_library)
      add_library(${library} INTERFACE IMPORTED GLOBAL)
      target_include_directories(${library} INTERFACE ${CMAKE_REQUIRED_INCLUDES})
      target_link_libraries(${library} INTERFACE ${CMAKE_REQUIRED_LIBRARIES})
      target_compile_definitions(${library} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
      find_program(RESHARD_MPIRUN_${flavour} NAMES ${launchers})
      set(RESHARD_MPICC_${flavour} ${RESHARD_WRAPPER_${name}} CACHE INTERNAL "")
      list(APPEND RESHARD_MPI_FLAVOURS ${flavour})
      return(PROPAGATE RESHARD_MPI_FLAVOURS)
    endif()
  endforeach()
endfunction()
if(RESHARD_MPI)
  find_mpi(mpi OPEN_MPI "mpirun.openmpi;mpirun" mpicc.openmpi mpicc)
  find_mpi(mpich MPICH_VERSION "mpirun.mpich;mpiexec.hydra;mpirun" mpicc.mpich mpicc)
endif()
set(RESHARD_HAS_MPI ${RESHARD_MPI_FLAVOURS})
say_backend(MPI "${RESHARD_MPICC_mpi} ${RESHARD_MPICC_mpich}"
  "no MPI 3 found that works, apt install libopenmpi-dev openmpi-bin")
