// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/report/transfer_report.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/core.h>

#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/layout/mesh.h"
#include "core/topology/gpu_figures.h"
#include "core/traffic/accounting.h"
#include "sim/models/report/pipeline_stages.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kPsPerSecond = 1'000'000'000'000;

void add(TransferGroup& to, const GroupFacts& kind) {
  to.tensors += kind.tensors.size();
  to.bytes = std::min(to.bytes + kind.bytes, kMaxBytes);
  to.use += kind.use;
}

// In the order of the kinds: those with the most received bytes first.
std::vector<TransferGroup> by_name(const std::vector<GroupFacts>& kinds) {
  std::vector<TransferGroup> out;
  std::map<std::string, std::size_t> known;
  for (const GroupFacts& kind : kinds) {
    // The name of a kind of one tensor has its layer's number.
    std::string name = kind.name;
    if (int layer = layer_in(name); layer >= 0) {
      std::string number = "layers." + std::to_string(layer);
      name.replace(name.find(number), number.size(), "layers.*");
    }
    if (name.starts_with("model.")) name = name.substr(6);
    auto [at, is_new] = known.try_emplace(name, out.size());
    if (is_new) out.push_back({name, {}, {}, 0, 0, {}});
    add(out[at->second], kind);
  }
  return out;
}

std::vector<TransferGroup> by_stage(const RunReport& run, std::span<const TensorUse> uses) {
  std::vector<const Request*> requests;
  for (const Request& request : run.tensors) requests.push_back(&request);
  std::vector<TransferGroup> out;
  for (const PipelineStage& stage : pipeline_stages(requests, false)) {
    TransferGroup group{stage.layers_text(),
                        ranks_text(stage.from),
                        ranks_text(stage.to),
                        stage.tensors.size(),
                        0,
                        {}};
    for (std::size_t tensor : stage.tensors) {
      group.bytes = static_cast<std::int64_t>(
          std::min<Int128>(group.bytes + bytes_of(*requests[tensor]), kMaxBytes));
      group.use += uses[tensor];
    }
    out.push_back(std::move(group));
  }
  return out;
}

// The most bytes that a rank has in buffers of another dtype, adding the sizes in both dtypes.
std::int64_t converted_bytes(const StoredRequests* stored) {
  std::int64_t most = 0;
  if (stored == nullptr) return most;
  for (const Stored* side : {&stored->source(), &stored->destination()}) {
    std::map<Rank, std::int64_t> bytes;
    for (const StoredBuffer& buffer : side->buffers())
      if (buffer.converts)
        for (const StoredPart& part : buffer.parts) {
          std::int64_t& sum = bytes[buffer.rank];
          sum += element_count(part.box.extents()) *
                 (size_bytes(buffer.dtype) + size_bytes(side->tensors()[part.tensor].dtype)) / 2;
          most = std::max(most, sum);
        }
  }
  return most;
}

std::optional<LocalWork> local_work(const RunReport& run, const Plan& plan,
                                    const Topology& topology) {
  std::optional<GpuFigures> figures = gpu_figures(topology.machine());
  if (!figures || figures->memory_bytes_per_s == 0) return std::nullopt;
  LocalWork out{figures->memory_bytes_per_s, 0, converted_bytes(run.buffers),
                run.bytes.received_max};
  std::vector<std::int64_t> sent(plan.ranks.size(), 0);
  for (const PairBytes& pair : traffic_of(plan))
    out.pack_bytes = std::max(out.pack_bytes, sent[to_index(pair.source)] += pair.bytes);
  return out;
}

}  // namespace

std::int64_t LocalWork::time_ps(std::int64_t bytes) const {
  return static_cast<std::int64_t>(
      ceil_div(Int128{2} * bytes * kPsPerSecond, Int128{rate_bytes_per_s}));
}

TransferReport report_of_transfer(TransferText text, RunReport run, Study& study) {
  TransferReport out{std::move(text), std::move(run), {}, {}};
  if (out.run.job) {
    out.kinds = by_name(out.run.job->facts.kinds);
    for (const GroupFacts& kind : out.run.job->facts.kinds)
      out.relayed_bytes +=
          std::max<std::int64_t>(0, kind.use.received_bytes - kind.least_received_bytes);
    out.stages = by_stage(out.run, study.tensor_uses(study.timeline()));
  }
  out.in_turn = !study.stages().empty();
  out.local = local_work(out.run, study.plan_in_series(), study.topology());
  return out;
}

}  // namespace reshard::sim
