// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/transfer.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/weights/config.h"

namespace reshard::sim {
namespace {

std::vector<Rank> ranks_of(const SideSpec& spec, std::string_view field, std::int64_t needed,
                           std::int64_t first_rank) {
  std::vector<Rank> out;
  if (!spec.ranks.empty()) {
    out = parse_ranks(spec.ranks, field);
    std::vector<Rank> sorted = out;
    std::sort(sorted.begin(), sorted.end());
    if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      throw InputError(
          fmt::format("{}: expected each rank once, found {} twice", field, to_int(*twice)));
    if (std::ssize(out) == needed) return out;
    if (!spec.ranks_may_change || out.empty())
      throw InputError(fmt::format("{}: expected {} for {}, found {}", field,
                                   counted(needed, "rank"), reshard::quoted(spec.parallelism),
                                   out.size()));
    first_rank = to_int(out.front());
    out.clear();
  }
  if (first_rank + needed > kMaxRanks)
    throw InputError(fmt::format("{}: expected ranks below {}, found {} from {} on", field,
                                 kMaxRanks, needed, first_rank));
  for (std::int64_t rank = first_rank; rank < first_rank + needed; ++rank)
    out.push_back(Rank{static_cast<std::int32_t>(rank)});
  return out;
}

// Whether the weights are moved together with their scales. If not, adds a note with the reason.
bool keeps_scales(const Model& model, const ModelTransfer& transfer, bool both_hold,
                  std::vector<std::string>& notes) {
  if (transfer.dtype == "fp8") {
    if (!model.scale_block)
      throw InputError(
          fmt::format("{}: expected fp8 for a model with a weight_block_size, found {} without",
                      transfer.fields.dtype, model.file));
    if (!both_hold)
      throw InputError(fmt::format(
          "{}: expected fp8 between frameworks that hold scales of blocks, found one that does "
          "not; quantise afterwards",
          transfer.fields.dtype));
    return true;
  }
  if (!model.scale_block || !transfer.dtype.empty()) return false;
  if (!both_hold)
    notes.push_back(
        "weights before quantisation in FP8, as a side holds no scales of blocks; quantise "
        "afterwards");
  return both_hold;
}

class SideWriter {
 public:
  SideWriter(const SideSpec& spec, std::string_view field, std::string_view ranks_field)
      : spec_(spec),
        field_(field),
        ranks_field_(ranks_field),
        options_(spec.parallelism, field),
        framework_(framework_of(options_)) {}

  const FrameworkRow& framework() const { return framework_; }

  // The lines of the side; `description` is set to a description of it. Unless the spec gives
  // ranks, they begin at `first_rank`, which is set to the rank after them.
  std::string lines(std::string_view side, const Model& model, bool has_scales,
                    std::int64_t& first_rank, std::string& description,
                    std::vector<std::string>& notes) {
    std::vector<Rank> ranks =
        ranks_of(spec_, ranks_field_, framework_.ranks(model, options_), first_rank);
    first_rank = to_int(*std::max_element(ranks.begin(), ranks.end())) + 1;
    description = fmt::format("{} on {} {}", options_.text(), ranks.size() == 1 ? "rank" : "ranks",
                              ranks_text(ranks));
    SideLines out(side, has_scales);
    std::vector<std::string> own;
    framework_.write({model, options_, std::move(ranks), out, own});
    options_.refuse_others(framework_.words);
    for (const std::string& note : own) notes.push_back(fmt::format("{}: {}", field_, note));
    return out.text();
  }

 private:
  const SideSpec& spec_;
  std::string field_, ranks_field_;
  Parallelism options_;
  const FrameworkRow& framework_;
};

}  // namespace

void change_dtype(Model& model, DType dtype) {
  auto change = [&](WeightGroup& group) {
    for (Weight& weight : group.weights)
      if (weight.role != Role::RouterBias) weight.dtype = dtype;
  };
  change(model.embedding);
  for (WeightGroup& layer : model.layers) change(layer);
  change(model.head);
}

TransferText transfer_text(Model model, const ModelTransfer& transfer) {
  TransferText out;
  out.model = fmt::format("{}, {} layers", model.family, model.layers.size());
  out.notes = model.notes;
  const TransferFields& fields = transfer.fields;
  std::optional<SideWriter> from, to;
  if (!transfer.from.given) from.emplace(transfer.from, fields.from, fields.ranks);
  if (!transfer.to.given) to.emplace(transfer.to, fields.to, fields.to_ranks);
  const bool both_hold =
                 from && to && from->framework().holds_scales && to->framework().holds_scales,
             has_scales = keeps_scales(model, transfer, both_hold, out.notes);
  if (has_scales)
    quantise(model);
  else if (!transfer.dtype.empty())
    change_dtype(model, parse_dtype(transfer.dtype, fields.dtype));
  out.dtype = has_scales ? "f8e4m3 with scales" : text(model.embedding.weights.front().dtype);
  out.lines = "{\"reshard_check\": 1}\n" + tensor_lines(model, has_scales);
  std::int64_t first_rank = 0;
  auto add = [&](std::optional<SideWriter>& side, const SideSpec& spec, std::string_view name,
                 std::string& description) {
    if (side) {
      out.lines += side->lines(name, model, has_scales, first_rank, description, out.notes);
      return;
    }
    out.lines += spec.given->lines;
    description = spec.given->description;
    first_rank = spec.given->end_rank;
    out.notes.insert(out.notes.end(), spec.given->notes.begin(), spec.given->notes.end());
  };
  add(from, transfer.from, "from", out.from);
  add(to, transfer.to, "to", out.to);
  return out;
}

}  // namespace reshard::sim
