// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/tensors/job_facts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "sim/study/tensors/tensor_groups.h"

namespace reshard::sim {
namespace {

// Sums over the lines of a trace can exceed what one plan may hold.
std::int64_t at_most_all(Int128 bytes) {
  return static_cast<std::int64_t>(std::min(bytes, Int128{kMaxBytes}));
}

// The ranks of one side of the tensors, ascending, each once.
class RankUnion {
 public:
  void add(const Mesh& mesh) {
    // Most tensors are on the same mesh as the one before.
    if (before_ == &mesh) return;
    before_ = &mesh;
    ranks_.insert(ranks_.end(), mesh.ranks().begin(), mesh.ranks().end());
  }
  std::vector<Rank> take() {
    std::sort(ranks_.begin(), ranks_.end());
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
    return std::move(ranks_);
  }

 private:
  const Mesh* before_ = nullptr;
  std::vector<Rank> ranks_;
};

GroupFacts facts_of(const TensorGroup& group, std::span<const Request* const> tensors,
                    std::span<const TensorUse> uses) {
  GroupFacts out(*tensors[group.tensors.front()]);
  out.name = group.name;
  out.tensors = group.tensors;
  RankUnion sources, destinations;
  Int128 bytes = 0;
  for (std::size_t t : group.tensors) {
    bytes += bytes_of(*tensors[t]);
    out.use += uses[t];
    sources.add(tensors[t]->source().mesh());
    destinations.add(tensors[t]->destination().mesh());
  }
  out.bytes = at_most_all(bytes);
  out.source_ranks = sources.take();
  out.destination_ranks = destinations.take();
  return out;
}

bool goes_before(const GroupFacts& a, const GroupFacts& b) {
  return std::tuple(-a.use.received_bytes, -a.bytes, a.tensors.front()) <
         std::tuple(-b.use.received_bytes, -b.bytes, b.tensors.front());
}

std::string ranks_name_of(const std::vector<Rank>& ranks) {
  constexpr std::size_t kLongest = 24;
  std::string all = ranks_text(ranks);
  return all.size() <= kLongest ? all : all.substr(0, kLongest - 3) + "...";
}

}  // namespace

Int128 bytes_of(const Request& request) {
  return Int128{element_count(request.shape())} * size_bytes(request.dtype());
}

std::string kind_text(const Request& request) {
  const Layout &from = request.source(), &to = request.destination();
  std::string out =
      fmt::format("{}[{}] {} on {} -> {}", text(request.dtype()), text(request.shape()),
                  from.label(), shape_text(from.mesh()), to.label());
  return request.same_mesh() ? out : fmt::format("{} on {}", out, shape_text(to.mesh()));
}

std::optional<FullLinks> full_links(const Timeline& timeline, const Topology& topology) {
  const std::vector<ResourceUse>& uses = timeline.resources;
  auto capacity = [&](std::size_t id) {
    return Int128{topology.resource_bytes_per_s(id_of<ResourceId>(id))};
  };
  std::size_t fullest = 0;
  for (std::size_t id = 0; id < uses.size(); ++id)
    if (uses[id].bytes * capacity(fullest) > uses[fullest].bytes * capacity(id)) fullest = id;
  if (uses.empty() || uses[fullest].bytes == 0) return std::nullopt;
  Hop hop = topology.hop_of(id_of<ResourceId>(fullest));
  FullLinks out{topology.hop_name(hop),
                0,
                0,
                {topology.resource_name(id_of<ResourceId>(fullest)), uses[fullest].bytes,
                 uses[fullest].busy_ps, static_cast<std::int64_t>(capacity(fullest))}};
  for (std::size_t id = 0; id < uses.size(); ++id) {
    if (uses[id].bytes == 0 || topology.hop_of(id_of<ResourceId>(id)) != hop) continue;
    Int128 own = uses[id].bytes * capacity(fullest), most = uses[fullest].bytes * capacity(id);
    ++out.used;
    out.full += own >= most - most / 100 ? 1 : 0;
  }
  return out;
}

std::vector<GroupFacts> group_facts(std::span<const TensorGroup> groups,
                                    std::span<const Request* const> tensors,
                                    std::span<const TensorUse> uses, const CutSets& sets,
                                    RequestDemand* demand) {
  RESHARD_CHECK(tensors.size() == uses.size(), "uses of other tensors");
  std::vector<GroupFacts> out;
  std::optional<RequestDemand> sum;
  for (const TensorGroup& group : groups) {
    GroupFacts& facts = out.emplace_back(facts_of(group, tensors, uses));
    std::vector<Request> requests;
    requests.reserve(group.tensors.size());
    for (std::size_t t : group.tensors) requests.push_back(*tensors[t]);
    RequestDemand own = demand_of(requests, sets);
    facts.bound = bound_of(own, sets);
    if (!own.receipts_bytes.empty())
      facts.least_received_bytes = at_most_all(own.receipts_bytes.front());
    if (sum)
      add(*sum, own);
    else
      sum = std::move(own);
  }
  if (demand != nullptr && sum) *demand = *std::move(sum);
  return out;
}

JobFacts job_facts(std::span<const Request* const> tensors, std::span<const TensorUse> uses,
                   const Timeline& timeline, const CutSets& sets, RequestDemand* demand) {
  JobFacts out{group_facts(tensor_kinds(tensors), tensors, uses, sets, demand),
               full_links(timeline, sets.topology())};
  for (GroupFacts& kind : out.kinds) kind.text = kind_text(kind.first);
  std::stable_sort(out.kinds.begin(), out.kinds.end(), goes_before);
  return out;
}

std::string job_text(std::span<const Request> tensors, const Stages& stages) {
  if (tensors.size() == 1) return tensors.front().text();
  RankUnion sources, destinations;
  Int128 bytes = 0;
  for (const Request& tensor : tensors) {
    bytes += bytes_of(tensor);
    sources.add(tensor.source().mesh());
    destinations.add(tensor.destination().mesh());
  }
  std::vector<Rank> from = sources.take(), to = destinations.take();
  std::size_t kinds = tensor_kinds(pointers_to(tensors)).size();
  std::string out = fmt::format("{} tensors of {}, {}, ranks {}", tensors.size(),
                                counted(static_cast<std::int64_t>(kinds), "kind"),
                                bytes_text(at_most_all(bytes)), ranks_name_of(from));
  if (from != to) out += " -> " + ranks_name_of(to);
  return stages.empty() ? out : fmt::format("{}, in {} stages", out, stages.size());
}

}  // namespace reshard::sim
