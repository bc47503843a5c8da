// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/interference.h"

#include <algorithm>

#include "core/base/units.h"
#include "sim/network/program.h"
#include "sim/sharing/flow_groups.h"

namespace reshard::sim {

Interference::Interference(const Topology& topology, bool slow) {
  auto figure = [&](Figure which, std::int64_t otherwise) {
    return topology.machine().figure(which).value_or(otherwise);
  };
  compute_under_nccl_ = figure(Figure::ComputeUnderNccl, kRatioOne);
  nccl_under_compute_ = figure(Figure::NcclUnderCompute, kRatioOne);
  compute_under_copy_ = figure(Figure::ComputeUnderCopy, kRatioOne);
  copy_under_compute_ = figure(Figure::CopyUnderCompute, kRatioOne);
  sms_ = figure(Figure::Sms, 0) / kRatioOne;
  none_ = !slow && sms_ == 0 &&
          std::min({compute_under_nccl_, nccl_under_compute_, compute_under_copy_,
                    copy_under_compute_}) == kRatioOne;
  if (!none_) gpus_.resize(to_index(topology.devices()));
}

std::int64_t Interference::share_of(const Gpu& gpu, std::int64_t blocks) const {
  std::int64_t share = kRatioOne;
  if (gpu.kernels > 0) share = std::min(share, compute_under_nccl_);
  if (gpu.engines > 0) share = std::min(share, compute_under_copy_);
  if (blocks > 0 && sms_ > 0) {
    std::int64_t taken = std::max(gpu.blocks_out, gpu.blocks_into),
                 left = std::max<std::int64_t>(1, sms_ - taken);
    share = std::min(share, std::max<std::int64_t>(
                                1, ceil_div(blocks, sms_) * kRatioOne / ceil_div(blocks, left)));
  }
  return std::max<std::int64_t>(1, share * gpu.speed / kRatioOne);
}

void Interference::slow_down(Rank rank, std::int64_t share, std::int64_t now_ps) {
  Gpu& gpu = gpus_[rank];
  gpu.speed = share;
  for (std::int32_t compute : gpu.computes) go_on(compute, now_ps);
}

std::int64_t Interference::share_of(const Transit& transit) const {
  if (none_ || transit.terms == nullptr || transit.terms->mover == Mover::Links) return kRatioOne;
  if (gpus_[transit.source].computes.empty() && gpus_[transit.destination].computes.empty())
    return kRatioOne;
  return transit.terms->mover == Mover::Kernels ? nccl_under_compute_ : copy_under_compute_;
}

// The compute goes on at its present share; if that is a new one, its end moves.
void Interference::go_on(std::int32_t compute, std::int64_t now_ps) {
  ComputeState& state = computes_[compute];
  std::int64_t share = share_of(gpus_[state.rank], state.blocks);
  if (share == state.share) return;
  state.left -= Int128{state.share} * (now_ps - state.since_ps);
  state.since_ps = now_ps;
  state.share = share;
  state.sequence = next_sequence_++;
  std::int64_t end_ps = later_ps(now_ps, ceil_div(std::max<Int128>(state.left, 0), Int128{share}));
  moved.push_back({compute, state.op, state.part, state.wait, end_ps, state.sequence});
}

std::int32_t Interference::begin_compute(const Sleep& sleep, std::int64_t blocks, std::int32_t wait,
                                         std::int64_t now_ps) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(computes_.size()));
    computes_.emplace_back();
  }
  std::int32_t compute = free_.back();
  free_.pop_back();
  ComputeState& state = computes_[compute];
  state = {sleep.op, sleep.part, wait, sleep.rank, blocks};
  state.since_ps = now_ps;
  state.left = Int128{sleep.duration_ps} * kRatioOne;
  Gpu& gpu = gpus_[sleep.rank];
  gpu.computes.push_back(compute);
  if (gpu.computes.size() == 1) reshared.insert(reshared.end(), gpu.flows.begin(), gpu.flows.end());
  go_on(compute, now_ps);
  return compute;
}

void Interference::end_compute(std::int32_t compute, std::int64_t /*now_ps*/) {
  Gpu& gpu = gpus_[computes_[compute].rank];
  std::erase(gpu.computes, compute);
  if (gpu.computes.empty()) reshared.insert(reshared.end(), gpu.flows.begin(), gpu.flows.end());
  computes_[compute].sequence = -1;
  free_.push_back(compute);
}

void Interference::change(Gpu& gpu, const Transit& transit, bool out, int by, std::int64_t now_ps) {
  (transit.terms->mover == Mover::Kernels ? gpu.kernels : gpu.engines) += by;
  (out ? gpu.blocks_out : gpu.blocks_into) += by * std::int64_t{transit.terms->blocks};
  for (std::int32_t compute : gpu.computes) go_on(compute, now_ps);
}

void Interference::begin_flow(std::int32_t flow, const Transit& transit, std::int64_t now_ps) {
  if (transit.terms == nullptr || transit.terms->mover == Mover::Links) return;
  for (bool out : {true, false}) {
    Gpu& gpu = gpus_[out ? transit.source : transit.destination];
    gpu.flows.push_back(flow);
    change(gpu, transit, out, 1, now_ps);
  }
}

void Interference::end_flow(std::int32_t flow, const Transit& transit, std::int64_t now_ps) {
  if (transit.terms == nullptr || transit.terms->mover == Mover::Links) return;
  for (bool out : {true, false}) {
    Gpu& gpu = gpus_[out ? transit.source : transit.destination];
    std::erase(gpu.flows, flow);
    change(gpu, transit, out, -1, now_ps);
  }
}

}  // namespace reshard::sim
