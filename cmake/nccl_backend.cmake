# SPDX-License-Identifier: BSD-3-Clause
# NCCL. Everything above its calls and the GPU's is built and tested everywhere; the calls themselves need nccl.h and the CUDA device.
reshard_part(reshard_nccl SOURCES
  backends/nccl/actions.cpp
  backends/nccl/collective_actions.cpp
  backends/nccl/communicators.cpp
  backends/nccl/exchange_actions.cpp
  backends/nccl/executor.cpp
  backends/nccl/launch.cpp
  backends/nccl/prepared.cpp
  backends/nccl/rank_memory.cpp
  backends/nccl/rendezvous.cpp
  backends/nccl/socket.cpp
  backends/nccl/star.cpp
  LINKS reshard_device reshard_plan)
