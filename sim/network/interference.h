// SPDX-License-Identifier: BSD-3-Clause
// Compute and transfers on one GPU slow each other, where the topology says so.
//
// While a kernel of NCCL moves bytes into or out of a GPU, compute there goes on at the share
// `compute.under_nccl` of its rate, and while the GPU computes, such a transfer reaches at most the
// share `nccl.under_compute` of what it would alone; the same of copies by engines
// (`compute.under_copy`, `copy.under_compute`). Where a compute says how many thread blocks T its
// kernels have and the topology how many multiprocessors S a GPU has (`gpu.sms`), the thread blocks
// c of the transfers are missing for it, and its kernels take more waves: it keeps at most the
// share
//
//     ceil(T / S) / ceil(T / (S - c))
//
// (nccl.md 5.3 in the project's references: a GEMM of 132 thread blocks beside an all-gather of 24
// takes twice as long). The least of the shares holds. Transfers by links alone disturb nothing.
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

  // Nothing slows anything.
  bool none() const { return none_; }

  // A compute begins; its number, free again after end_compute(). `blocks` 0: not known.
  std::int32_t begin_compute(const Sleep& sleep, std::int64_t blocks, std::int32_t wait,
                             std::int64_t now_ps);
  // Whether it ends now, by an end that was said under this sequence.
  bool ends(std::int32_t compute, std::int64_t sequence) const {
    return computes_[compute].sequence == sequence;
  }
  void end_compute(std::int32_t compute, std::int64_t now_ps);
  void begin_flow(std::int32_t flow, const Transit& transit, std::int64_t now_ps);
  void end_flow(std::int32_t flow, const Transit& transit, std::int64_t now_ps);
  // The rank computes at this share of its rate, in millionths, from now on.
  void slow_down(Rank rank, std::int64_t share, std::int64_t now_ps);
  // What the flow reaches of its rate alone, in millionths.
  std::int64_t share_of(const Transit& transit) const;

  // What the last calls changed: ends of computes, and flows whose share is another now. To be
  // cleared by who has read them.
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
    std::int64_t speed = 1'000'000;                // less where the rank is slow
    std::int32_t kernels = 0, engines = 0;         // transfers
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
