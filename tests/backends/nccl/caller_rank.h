// SPDX-License-Identifier: BSD-3-Clause
// One rank of a program that brings its own communicator, stream and buffers, on the NCCL stand-in;
// and an executor that runs plans on them, for the conformance suite.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "backends/nccl/executor.h"
#include "tests/backends/nccl/raw_rank.h"

namespace reshard::test {

using backends::nccl::CallerCommunicator;
using backends::nccl::NcclExecutor;
using backends::nccl::Prepared;

// Device memory of the caller's. Its shards begin one element behind what a GPU aligns to: views of
// a framework's tensors begin anywhere.
class CallerBuffer {
 public:
  CallerBuffer(StandinDevice& device, std::int64_t bytes, std::int64_t offset)
      : memory_(device, bytes + offset), at_(memory_.data() + offset), bytes_(bytes) {}
  std::span<std::byte> bytes() const {
    return bytes_ == 0 ? std::span<std::byte>() : std::span(at_, static_cast<std::size_t>(bytes_));
  }

 private:
  backends::DeviceMemory memory_;
  std::byte* at_;
  std::int64_t bytes_;
};

struct CallerRank {
  std::shared_ptr<backends::nccl::NcclApi> api;
  std::shared_ptr<StandinDevice> device;
  std::shared_ptr<RawRank> raw;
  CallerCommunicator lent;

  CallerRank(StandinParts parts, std::int32_t rank, std::int32_t world)
      : raw(std::make_shared<RawRank>(std::move(parts), rank, world)) {
    // Kept by what they are parts of.
    api = {raw, raw->parts.api.get()};
    device = {raw, raw->device};
    raw->init();
    lent = {raw->comm, raw->stream};
  }
  backends::nccl::Job job(std::chrono::milliseconds limit) const {
    return backends::nccl::job_on(api, device, lent, limit);
  }
  // Everything of the caller's is as it was: the communicator still works, and only the caller
  // gives it back.
  void use_and_close() const {
    raw->wait();
    raw->api().group_start();
    raw->send((raw->rank + 1) % raw->world);
    raw->receive((raw->rank + raw->world - 1) % raw->world);
    raw->api().group_end();
    raw->wait();
    raw->close();
  }
};

// What a rank has of a plan, on its device: source and destination of every tensor in turn.
struct CallerPlan {
  std::deque<CallerBuffer> buffers;

  static std::int64_t bytes_of(const Plan& plan, BufferId buffer, std::int32_t rank) {
    if (!std::binary_search(plan.ranks.begin(), plan.ranks.end(), Rank{rank})) return 0;
    return plan.buffer_bytes(buffer, plan.slot_of(Rank{rank}));
  }
  CallerPlan(const Plan& plan, StandinDevice& device, std::int32_t rank) {
    for (std::size_t b = 0; b < 2 * plan.tensors.size(); ++b) {
      BufferId buffer{static_cast<std::int32_t>(b)};
      buffers.emplace_back(device, bytes_of(plan, buffer, rank), plan.element_bytes(buffer));
    }
  }
  CallerPlan(const CallerPlan&) = delete;
  std::vector<CallerShards> shards() const {
    std::vector<CallerShards> out;
    for (std::size_t b = 0; b < buffers.size(); b += 2)
      out.push_back({buffers[b].bytes(), buffers[b + 1].bytes()});
    return out;
  }
  const CallerBuffer& source() const { return buffers[0]; }
  const CallerBuffer& destination() const { return buffers[1]; }
};

class CallerExecutor : public Executor {
 public:
  CallerExecutor(const CallerRank& rank, backends::nccl::Job job)
      : rank_(rank), executor_(std::move(job)) {}

  std::string_view name() const override { return "nccl over a caller's communicator"; }
  Processes& processes() override { return executor_.processes(); }
  bool folds_in_own_order(const Plan& plan) const override {
    return executor_.folds_in_own_order(plan);
  }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override {
    return std::make_unique<Run>(plan, rank_, executor_);
  }
  NcclExecutor& inner() { return executor_; }

 private:
  class Run : public PreparedPlan {
   public:
    Run(const Plan& plan, const CallerRank& rank, NcclExecutor& executor)
        : plan_(plan), rank_(rank), buffers_(plan, *rank.device, rank.raw->rank) {
      executor.prepare(plan, buffers_.shards());  // and given back
      std::int64_t before = rank.device->free_bytes(),
                   needed = executor.needed_bytes(plan, buffers_.shards());
      RESHARD_CHECK(rank.device->free_bytes() == before, "asking takes nothing");
      prepared_ = executor.prepare(plan, buffers_.shards());
      RESHARD_CHECK(before - rank.device->free_bytes() <= needed, "no more is taken than was said");
    }
    void fill(const FillSource& fill, TensorId tensor) override {
      if (!has(source_of(tensor))) return;
      std::span<std::byte> bytes = buffers_.buffers[to_index(source_of(tensor))].bytes();
      std::vector<std::byte> host(bytes.size());
      fill(me(), host);
      if (host.empty()) return;
      rank_.device->upload(bytes.data(), host, rank_.lent.stream);
      rank_.raw->wait();
    }
    // Nothing is waited for: what comes next on the caller's stream finds the result.
    Timeline run() override {
      prepared_->enqueue();
      return {};
    }
    void take(const TakeDestination& take, TensorId tensor) override {
      if (!has(destination_of(tensor))) return;
      std::span<std::byte> bytes = buffers_.buffers[to_index(destination_of(tensor))].bytes();
      std::vector<std::byte> host(bytes.size());
      if (!host.empty()) rank_.device->download(host, bytes.data(), rank_.lent.stream);
      rank_.raw->wait();
      take(me(), host);
    }

   private:
    Rank me() const { return Rank{rank_.raw->rank}; }
    bool has(BufferId buffer) const {
      return std::binary_search(plan_.ranks.begin(), plan_.ranks.end(), me()) &&
             plan_.buffer(buffer).exists(plan_.slot_of(me()));
    }
    const Plan& plan_;
    const CallerRank& rank_;
    CallerPlan buffers_;
    std::unique_ptr<Prepared> prepared_;
  };

  const CallerRank& rank_;
  NcclExecutor executor_;
};

}  // namespace reshard::test
