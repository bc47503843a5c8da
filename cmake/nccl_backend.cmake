# SPDX-License-Identifier: BSD-3-Clause
# NCCL. Everything above its calls and the GPU's is built and tested everywhere; the calls
# themselves need nccl.h and the CUDA device.
reshard_part(reshard_nccl SOURCES
  backends/nccl/actions.cpp
  backends/nccl/caller.cpp
  backends/nccl/communicator_meeting.cpp
  backends/nccl/communicators.cpp
  backends/nccl/making_communicators.cpp
  backends/nccl/executor.cpp
  backends/nccl/prepared.cpp
  LINKS reshard_device reshard_host reshard_job reshard_traffic)
if(RESHARD_HAS_NCCL)
  reshard_part(reshard_nccl_library SOURCES
    backends/nccl/nccl_library.cpp
    backends/nccl/probe.cpp
    LINKS reshard_nccl reshard_cuda_device)
  target_include_directories(reshard_nccl_library SYSTEM PRIVATE ${NCCL_INCLUDE}
    ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(reshard_nccl_library PRIVATE ${CMAKE_DL_LIBS})
  # Where the library lies beside that header: looked into after the system's own places.
  find_file(NCCL_LIBRARY_FILE NAMES libnccl.so.2 HINTS ${NCCL_INCLUDE}/../lib
    ${NCCL_INCLUDE}/../lib64 NO_DEFAULT_PATH)
  if(NCCL_LIBRARY_FILE)
    target_compile_definitions(reshard_nccl_library PRIVATE
      "RESHARD_NCCL_FILE=\"${NCCL_LIBRARY_FILE}\"")
  endif()
endif()
