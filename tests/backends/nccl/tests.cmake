# SPDX-License-Identifier: BSD-3-Clause
# The executor on a stand-in for NCCL that checks how it is used, and on GPUs made of host memory.
if(THRUST_INCLUDE)
  add_library(reshard_nccl_standin STATIC
    tests/support/nccl_carry.cpp
    tests/support/nccl_ranks.cpp
    tests/support/nccl_standin.cpp
    tests/support/nccl_world.cpp)
  target_link_libraries(reshard_nccl_standin PUBLIC reshard_nccl reshard_host_device
    Threads::Threads PRIVATE reshard_flags fmt::fmt)
  reshard_test(test_nccl SOURCES
    tests/backends/nccl/test_communicators.cpp
    tests/backends/nccl/test_nccl_agrees.cpp
    tests/backends/nccl/test_nccl_caller.cpp
    tests/backends/nccl/test_nccl_executor.cpp
    tests/backends/nccl/test_nccl_faults.cpp
    tests/backends/nccl/test_nccl_standin.cpp
    LINKS reshard_nccl_standin reshard_conformance reshard_study reshard_machines)
endif()
# The calls themselves; only where the library lies beside its header.
if(RESHARD_HAS_NCCL AND NCCL_LIBRARY_FILE)
  reshard_test(test_nccl_library SOURCES
    tests/backends/nccl/test_nccl_library.cpp
    LINKS reshard_nccl_library)
endif()
