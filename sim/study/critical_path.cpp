// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/critical_path.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "sim/network/engine.h"

namespace reshard::sim {

namespace {

// Records what limits the rate of the chain's current flow; at most one is active at a time.
class LimitsOfChain : public FlowObserver {
 public:
  struct Limit {
    std::int64_t since_ps;
    std::optional<ResourceId> resource;  // none: the flow's rate cap
  };

  explicit LimitsOfChain(const std::vector<Wait>& chain) : chain_(chain), limits_(chain.size()) {}

  // The limits of one wait of the chain, ascending in time.
  const std::vector<Limit>& of(std::size_t wait) const { return limits_[wait]; }

  void begun(std::int32_t flow) override {
    std::int32_t transfer = transfers_++;
    while (next_ < chain_.size() && chain_[next_].transfer < transfer) ++next_;  // compute
    if (next_ == chain_.size() || chain_[next_].transfer > transfer) return;
    at_ = next_++;
    flow_ = flow;
    held_by_.reset();
  }

  void held(std::int32_t flow, std::optional<ResourceId> by) override {
    if (at_ != kNowhere && flow == flow_) held_by_ = by;
  }

  void solved(std::int64_t now_ps, const FairShare& shares, std::span<const ResourceId>) override {
    if (at_ == kNowhere || now_ps < chain_[at_].moving_ps || now_ps >= chain_[at_].end_ps) return;
    std::optional<ResourceId> limit = held_by_ ? held_by_ : shares.limit(flow_);
    std::vector<Limit>& limits = limits_[at_];
    if (limits.empty() || limits.back().resource != limit) limits.push_back({now_ps, limit});
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  const std::vector<Wait>& chain_;
  std::vector<std::vector<Limit>> limits_;
  std::int32_t transfers_ = 0, flow_ = -1;
  std::size_t next_ = 0, at_ = kNowhere;  // indices in the chain; at_: the wait of flow_
  std::optional<ResourceId> held_by_;     // the link that is down and stops flow_
};

class Parts {
 public:
  explicit Parts(const Topology& topology) : topology_(topology) {}

  void add(const Wait& wait, const std::vector<LimitsOfChain::Limit>& limits) {
    if (wait.transfer < 0) return add(wait, WaitedFor::Compute, wait.start_ps, wait.end_ps);
    const RouteRule& rule = topology_.rule(wait.source, wait.destination);
    std::int64_t launched_ps = std::max(wait.start_ps, wait.moving_ps - rule.latency_ps);
    add(wait, WaitedFor::Launch, wait.start_ps, launched_ps);
    add(wait, WaitedFor::Latency, launched_ps, wait.moving_ps);
    RESHARD_CHECK(
        limits.empty() ? wait.moving_ps == wait.end_ps : wait.moving_ps == limits.front().since_ps,
        "a transfer whose limits are not known");
    bool routes_cap = rule.cap_bytes_per_s && *rule.cap_bytes_per_s <= wait.cap_bytes_per_s;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      std::optional<ResourceId> resource = limits[i].resource;
      add(wait,
          resource     ? WaitedFor::Resource
          : routes_cap ? WaitedFor::Cap
                       : WaitedFor::Protocol,
          limits[i].since_ps, i + 1 < limits.size() ? limits[i + 1].since_ps : wait.end_ps,
          resource.value_or(ResourceId{-1}));
    }
  }

  std::vector<PathPart> take() { return std::move(parts_); }

 private:
  void add(const Wait& wait, WaitedFor cause, std::int64_t start_ps, std::int64_t end_ps,
           ResourceId resource = ResourceId{-1}) {
    if (start_ps == end_ps) return;
    PathPart part{wait.op, wait.step, cause, resource, start_ps, end_ps};
    if (!parts_.empty() && parts_.back().differs_in_time_only(part))
      parts_.back().end_ps = end_ps;
    else
      parts_.push_back(part);
  }

  const Topology& topology_;
  std::vector<PathPart> parts_;
};

}  // namespace

std::string cause_text(const PathPart& part, const Topology& topology) {
  constexpr std::array<std::string_view, 6> kWords{"",    "latency",  "launch",
                                                   "cap", "protocol", "compute"};
  if (part.cause == WaitedFor::Resource) return topology.resource_name(part.resource);
  return std::string(kWords[to_index(part.cause)]);
}

std::optional<std::vector<PathPart>> critical_path(const Workload& workload,
                                                   const Topology& topology, Carriers carriers,
                                                   const Order* order,
                                                   std::span<const Fault> faults) {
  WaitLog waits;
  run(workload, topology,
      {.record_spans = false,
       .carriers = carriers,
       .order = order,
       .faults = faults,
       .waits = &waits});
  if (waits.full()) return std::nullopt;
  std::vector<Wait> chain = waits.chain();
  waits = {};
  LimitsOfChain limits(chain);
  run(workload, topology,
      {.record_spans = false,
       .carriers = carriers,
       .order = order,
       .faults = faults,
       .observer = &limits});
  Parts parts(topology);
  for (std::size_t i = 0; i < chain.size(); ++i) parts.add(chain[i], limits.of(i));
  return parts.take();
}

}  // namespace reshard::sim
