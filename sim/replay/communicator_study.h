// SPDX-License-Identifier: BSD-3-Clause
// Runs a trace under different communicator policies: which hang, and what the others cost.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/carrier.h"
#include "sim/network/fault.h"
#include "sim/network/order.h"
#include "sim/trace/trace.h"
#include "sim/transport/communicators.h"

namespace reshard::sim {

struct CommunicatorResult {
  CommunicatorUse use;
  std::int64_t serialised_launches = 0;  // study/serialised.h
  std::int64_t end_ps = 0;
  std::string hang;  // why the trace cannot run; then only `use` is set
};

// A hang of a trace with messages that name no communicator, if they use those that PyTorch creates
// by default.
struct DefaultHang {
  CommunicatorPolicy policy;               // PyTorch's without a device_id
  std::vector<CommunicatorPolicy> others;  // those under which it hangs, too
  std::vector<std::int64_t> lines;
  std::string what;
};

class CommunicatorStudy {
 public:
  // Keeps references. `by_nccl` and `carriers` are indexed by operation of the trace. If `cold`,
  // creating communicators takes time.
  CommunicatorStudy(const Trace& trace, const Topology& topology, OrderRules rules, bool cold,
                    const std::function<bool(OpId)>& by_nccl, std::span<Carrier* const> carriers,
                    std::span<const Fault> faults)
      : trace_(trace),
        topology_(topology),
        rules_(rules),
        cold_(cold),
        by_nccl_(by_nccl),
        carriers_(carriers.begin(), carriers.end()),
        faults_(faults) {}

  // Applies the policy to the workload and builds its order. If the workload then hangs, returns
  // why; `order` may be null in that case.
  std::optional<TraceFinding> use(CommunicatorPolicy policy, Workload& workload,
                                  std::unique_ptr<const Order>& order,
                                  CommunicatorResult& result) const;
  // Whether the workload hangs under PyTorch's default, and under which other policies. Not checked
  // for traces of more than kMaxTried operations, where the communicators alone take gigabytes.
  static constexpr std::size_t kMaxTried = std::size_t{1} << 18;
  std::optional<DefaultHang> default_hang(const Workload& workload) const;
  // Fills in what a run of the workload showed.
  static void tell(CommunicatorResult& result, const Workload& workload, const Order& order,
                   const Timeline& timeline);
  // Runs the workload under the policy. Throws what run() throws.
  CommunicatorResult what_if(CommunicatorPolicy policy, Workload workload) const;

 private:
  std::optional<TraceFinding> hang(CommunicatorPolicy policy, Workload workload) const;
  // Whether some message carried by NCCL names no communicator.
  bool has_plain_messages() const;

  const Trace& trace_;
  const Topology& topology_;
  OrderRules rules_;
  bool cold_;
  const std::function<bool(OpId)>& by_nccl_;
  std::vector<Carrier*> carriers_;
  std::span<const Fault> faults_;
};

}  // namespace reshard::sim
