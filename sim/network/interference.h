// SPDX-License-Identifier: BSD-3-Clause
// Compute and transfers on one GPU slow each other down, if the topology has figures for it.
//
// While an NCCL kernel moves bytes into or out of a GPU, compute on it keeps the share
// `compute.under_nccl` of its rate, and while the GPU computes, such a transfer reaches at most the
// share `nccl.under_compute` of its rate alone; likewise for copies by engines
// (`compute.under_copy`, `copy.under_compute`). If a compute states how many thread blocks T its
// kernels have, and the topology how many multiprocessors S a GPU has (`gpu.sms`), then the thread
// blocks c of the transfers leave fewer multiprocessors to it, and its kernels take more waves: it
// keeps at most the share
//
//     ceil(T / S) / ceil(T / (S - c))
//
// With S = 132, a GEMM of 132 thread blocks takes twice as long next to an all-gather of 24. The
// least of the shares applies. Transfers by links alone disturb nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/topology/topology.h"
#include "sim/network/operation_run.h"

namespace reshard::sim {

struct Sleep;

class Interference {
 public:
  // `slow`: ranks may become slow.
  Interference(const Topology& topology, bool slow);

  // Whether nothing slows anything down.
  bool none() const { return none_; }

  // A compute begins; returns its number, which is reused after end_compute(). `blocks` 0: unknown.
  std::int32_t begin_compute(const Sleep& sleep, std::int64_t blocks, std::int32_t wait,
                             std::int64_t now_ps);
  // Whether the compute ends now: whether the end announced with this sequence is still valid.
  bool ends(std::int32_t compute, std::int64_t sequence) const {
    return computes_[compute].sequence == sequence;
  }
  void end_compute(std::int32_t compute, std::int64_t now_ps);
  void begin_flow(std::int32_t flow, const Transit& transit, std::int64_t now_ps);
  void end_flow(std::int32_t flow, const Transit& transit, std::int64_t now_ps);
  // From now on the rank computes at this share of its rate, in millionths.
  void slow_down(Rank rank, std::int64_t share, std::int64_t now_ps);
  // Share of its rate alone that the flow reaches, in millionths.
  std::int64_t share_of(const Transit& transit) const;

  // Changes made by the last calls: new ends of computes, and flows with a new share. The caller
  // clears them.
  struct End {
    std::int32_t compute;
    OpId op;
    std::int32_t part, wait;
    std::int64_t end_ps, sequence;
  };
  std::vector<End> moved;
  std::vector<std::int32_t> reshared;

 private:
  struct ComputeState {
    OpId op{0};
    std::int32_t part = -1, wait = -1;
    Rank rank{0};
    std::int64_t blocks = 0, share = 0, since_ps = 0, sequence = -1;
    Int128 left = 0;  // ps at the full rate, times 10^6
  };
  struct Gpu {
    std::int64_t speed = 1'000'000;                // less if the rank is slow
    std::int32_t kernels = 0, engines = 0;         // number of transfers
    std::int64_t blocks_out = 0, blocks_into = 0;  // of kernels
    std::vector<std::int32_t> computes, flows;
  };

  std::int64_t share_of(const Gpu& gpu, std::int64_t blocks) const;
  void go_on(std::int32_t compute, std::int64_t now_ps);
  void change(Gpu& gpu, const Transit& transit, bool out, int by, std::int64_t now_ps);

  std::int64_t compute_under_nccl_, nccl_under_compute_, compute_under_copy_, copy_under_compute_;
  std::int64_t sms_;
  bool none_;
  IndexVector<Rank, Gpu> gpus_;
  IndexVector<std::int32_t, ComputeState> computes_;
  std::vector<std::int32_t> free_;
  std::int64_t next_sequence_ = 0;
};

}  // namespace reshard::sim
