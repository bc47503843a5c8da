// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/communicator_study.h"

#include "sim/network/engine.h"
#include "sim/replay/deadlock.h"
#include "sim/replay/fault_study.h"
#include "sim/study/losses/serialised.h"

namespace reshard::sim {

std::optional<TraceFinding> CommunicatorStudy::use(CommunicatorPolicy policy, Workload& workload,
                                                   std::unique_ptr<const Order>& order,
                                                   CommunicatorResult& result) const {
  std::vector<std::vector<Rank>> members;
  std::vector<bool> named;
  for (const TraceCommunicator& communicator : trace_.communicators) {
    members.push_back(communicator.ranks);
    named.push_back(!communicator.name.empty());
  }
  result.use = use_communicators(policy, setup_costs_of(topology_), cold_, members, named, by_nccl_,
                                 workload);
  std::optional<TraceFinding> hang = find_parent_mismatch(trace_, workload, result.use);
  if (!hang) {
    order = std::make_unique<const Order>(workload, rules_);
    hang = find_hang(trace_, workload, *order, topology_);
  }
  if (hang) result.hang = hang->what;
  return hang;
}

std::optional<TraceFinding> CommunicatorStudy::hang(CommunicatorPolicy policy,
                                                    Workload workload) const {
  CommunicatorResult result;
  std::unique_ptr<const Order> order;
  return use(policy, workload, order, result);
}

bool CommunicatorStudy::has_plain_messages() const {
  for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
    auto op = id_of<OpId>(i);
    if (std::holds_alternative<TraceEnd>(trace_.operations[op].body) &&
        trace_.operations[op].communicator < 0 && by_nccl_(op))
      return true;
  }
  return false;
}

std::optional<DefaultHang> CommunicatorStudy::default_hang(const Workload& workload) const {
  constexpr CommunicatorPolicy kDefault = CommunicatorPolicy::Pairwise;
  if (trace_.operations.size() > kMaxTried || !has_plain_messages()) return std::nullopt;
  std::optional<TraceFinding> found = hang(kDefault, workload);
  if (!found) return std::nullopt;
  DefaultHang out{kDefault, {}, found->lines, found->what};
  for (CommunicatorPolicy other : kCommunicatorPolicies)
    if (other != kDefault && hang(other, workload)) out.others.push_back(other);
  return out;
}

void CommunicatorStudy::tell(CommunicatorResult& result, const Workload& workload,
                             const Order& order, const Timeline& timeline) {
  result.end_ps = timeline.end_ps;
  result.serialised_launches =
      static_cast<std::int64_t>(serialised_launches(workload, order, timeline).size());
}

CommunicatorResult CommunicatorStudy::what_if(CommunicatorPolicy policy, Workload workload) const {
  CommunicatorResult result;
  std::unique_ptr<const Order> order;
  if (use(policy, workload, order, result)) return result;
  std::vector<Carrier*> carriers = carriers_;
  carriers.resize(workload.operations.size(), nullptr);  // setups have no carrier
  try {
    tell(result, workload, *order,
         run(workload, topology_,
             {.carriers = {nullptr, carriers}, .order = order.get(), .faults = faults_}));
  } catch (const TransferStopped& stopped) {
    result.hang = finding_of(trace_, stopped).what;
  }
  return result;
}

}  // namespace reshard::sim
