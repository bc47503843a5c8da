// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/operation_bound.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

// ceil, cut to int64; bytes below 2^86.
std::int64_t least_ps(Int128 bytes, Int128 bytes_per_s) {
  if (bytes == 0) return 0;
  return static_cast<std::int64_t>(std::min<Int128>(
      ceil_div(bytes * 1'000'000'000'000, bytes_per_s), std::numeric_limits<std::int64_t>::max()));
}

// Bytes that enter a set with `inside` of the collective's n members.
Int128 collective_in(const BareCollective& collective, std::int64_t inside) {
  auto members = static_cast<std::int64_t>(collective.ranks.size());
  Int128 bytes = collective.bytes;
  if (inside == 0 || inside == members) return 0;
  switch (collective.kind) {
    case CollectiveKind::AllGather:
      return bytes * (members - inside);
    case CollectiveKind::ReduceScatter:  // one folded value per element that a member inside keeps
      return bytes * inside;
    case CollectiveKind::AllReduce:
      return bytes;
    case CollectiveKind::AllToAll:
      return bytes * inside * (members - inside);
  }
  return 0;
}

}  // namespace

void add_collective(std::vector<Int128>& in_bytes, const CutSets& sets,
                    const BareCollective& collective) {
  auto members = static_cast<std::int64_t>(collective.ranks.size());
  if (members < 2) return;
  const std::vector<Rank>& job = sets.ranks();
  for (const CutLevel& level : sets.levels()) {
    std::map<std::int32_t, std::int64_t> inside;  // members by set
    for (Rank rank : collective.ranks) {
      auto index =
          static_cast<std::size_t>(std::lower_bound(job.begin(), job.end(), rank) - job.begin());
      std::int32_t set = level.member_of[index];
      if (set >= 0) ++inside[set];
    }
    // A set without members has all of them in its complement: nothing enters either.
    for (auto [set, count] : inside) {
      std::size_t at = level.first_set + 2 * static_cast<std::size_t>(set);
      in_bytes[at] += collective_in(collective, count);
      in_bytes[at + 1] += collective_in(collective, members - count);
    }
  }
}

std::int64_t OperationBounds::least_latency_ps(Rank rank, bool into) const {
  const NodeTemplate& node = topology_.node();
  std::int32_t classes = topology_.classes(), mine = topology_.class_of(rank);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int32_t other = 0; other < classes; ++other) {
    std::int32_t rule = node.rule_within[static_cast<std::size_t>(into ? other * classes + mine
                                                                       : mine * classes + other)];
    if (rule >= 0) least = std::min(least, node.rules[static_cast<std::size_t>(rule)].latency_ps);
  }
  if (topology_.nodes() > 1)
    least = std::min(least, node.rules[static_cast<std::size_t>(node.rule_between)].latency_ps);
  return least;
}

std::vector<std::int64_t> OperationBounds::parts(const std::vector<Int128>& in_bytes,
                                                 const CutSets& sets) const {
  std::vector<std::int64_t> out(sets.ranks().size(), 0);
  if (sets.levels().empty()) return out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t set = sets.levels().front().first_set + 2 * i;  // the rank; then all others
    for (bool into : {true, false}) {
      std::size_t at = into ? set : set + 1;
      if (in_bytes[at] == 0) continue;
      out[i] = std::max({out[i], least_ps(in_bytes[at], sets.capacity_in(at)),
                         least_latency_ps(sets.ranks()[i], into)});
    }
  }
  return out;
}

std::shared_ptr<const OperationBound> OperationBounds::of_request(const Request& request) {
  std::shared_ptr<const OperationBound>& known = requests_[request.fingerprint()];
  if (known) return known;
  CutSets sets(topology_, request.ranks());
  RequestDemand demand = demand_of(request, sets);
  known = std::make_shared<const OperationBound>(
      OperationBound{reshard::bound_of(demand, sets).time_ps(), parts(demand.in_bytes, sets)});
  return known;
}

std::shared_ptr<const OperationBound> OperationBounds::of_collective(
    const BareCollective& collective) {
  std::shared_ptr<const OperationBound>& known =
      collectives_[{collective.kind, collective.bytes, collective.ranks}];
  if (known) return known;
  std::vector<Rank> sorted = collective.ranks;
  std::sort(sorted.begin(), sorted.end());
  CutSets sets(topology_, sorted);
  RequestDemand demand;
  demand.in_bytes.assign(sets.size(), 0);
  demand.receipts_bytes.assign(sets.levels().size(), 0);
  add_collective(demand.in_bytes, sets, collective);
  std::vector<std::int64_t> by_sorted = parts(demand.in_bytes, sets);
  OperationBound bound{reshard::bound_of(demand, sets).time_ps(), {}};
  for (Rank rank : collective.ranks)
    bound.part_ps.push_back(by_sorted[static_cast<std::size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), rank) - sorted.begin())]);
  known = std::make_shared<const OperationBound>(std::move(bound));
  return known;
}

// A message has one route: latency, then its bytes at the least of the capacities crossed and the
// cap.
OperationBound OperationBounds::of_message(const Message& message) const {
  Route route = topology_.route(message.source, message.destination);
  std::int64_t rate = route.cap_bytes_per_s.value_or(std::numeric_limits<std::int64_t>::max());
  for (ResourceId resource : route.resources)
    rate = std::min(rate, topology_.resource_bytes_per_s(resource));
  std::int64_t transfer = least_ps(message.bytes, rate);
  std::int64_t time = transfer > std::numeric_limits<std::int64_t>::max() - route.latency_ps
                          ? transfer
                          : transfer + route.latency_ps;
  return {time, {time, time}};
}

std::shared_ptr<const OperationBound> OperationBounds::of(const Operation& operation) {
  if (const auto* run = std::get_if<RunPlan>(&operation.body))
    return of_request(run->plan->request());
  if (const auto* collective = std::get_if<BareCollective>(&operation.body))
    return of_collective(*collective);
  if (const auto* message = std::get_if<Message>(&operation.body))
    return std::make_shared<const OperationBound>(of_message(*message));
  const auto& compute = std::get<Compute>(operation.body);
  std::int64_t time = compute.ranks.empty() ? 0 : compute.duration_ps;
  return std::make_shared<const OperationBound>(
      OperationBound{time, std::vector<std::int64_t>(compute.ranks.size(), time)});
}

std::int64_t summed_cut_bound_ps(const Workload& workload, const Topology& topology) {
  std::set<Rank> job;
  for (const Operation& operation : workload.operations)
    if (!std::holds_alternative<Compute>(operation.body))
      for (Rank rank : ranks_of(operation)) job.insert(rank);
  if (job.size() < 2) return 0;
  CutSets sets(topology, {job.begin(), job.end()});
  std::vector<Int128> in_bytes(sets.size(), 0);
  // How often each stands in the workload.
  std::map<Digest, std::pair<const Request*, std::int64_t>> requests;
  for (const Operation& operation : workload.operations) {
    if (const auto* run = std::get_if<RunPlan>(&operation.body)) {
      auto [it, is_new] =
          requests.try_emplace(run->plan->request().fingerprint(), &run->plan->request(), 0);
      ++it->second.second;
    } else if (const auto* collective = std::get_if<BareCollective>(&operation.body)) {
      add_collective(in_bytes, sets, *collective);
    } else if (const auto* message = std::get_if<Message>(&operation.body)) {
      add_transfer(in_bytes, sets, message->source, message->destination, message->bytes);
    }
  }
  for (const auto& [fingerprint, request] : requests) {
    RequestDemand demand = demand_of(*request.first, sets);
    for (std::size_t set = 0; set < in_bytes.size(); ++set)
      in_bytes[set] += demand.in_bytes[set] * request.second;
  }
  return cut_bound_ps(in_bytes, sets);
}

}  // namespace reshard::sim
