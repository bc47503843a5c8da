// SPDX-License-Identifier: BSD-3-Clause
// Ids are digests of the canonical JSON of what they name, as Mooncake computes and compares them.
#include "sim/exports/mooncake_placement.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/box_index.h"
#include "sim/exports/exports.h"
#include "sim/exports/sha256.h"

namespace reshard::sim {
namespace {

using SortedJson = nlohmann::json;  // its keys are sorted

std::string id_of(const SortedJson& content) {
  return fmt::format("sha256:{}", sha256_hex(content.dump(-1, ' ', true)));
}

SortedJson list_of(const DimVector& values) { return std::vector(values.begin(), values.end()); }

bool is_contiguous(const StridedView& view) {
  DimVector strides = row_major(view.extents);
  for (int d = 0; d < view.dims(); ++d)
    if (view.extents[d] > 1 && view.strides[d] != strides[d]) return false;
  return true;
}

// Joined where they are neighbours, ascending.
std::vector<std::pair<std::int64_t, std::int64_t>> joined(
    std::set<std::pair<std::int64_t, std::int64_t>> ranges) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (auto [lo, hi] : ranges)
    if (!out.empty() && lo <= out.back().second)
      out.back().second = std::max(out.back().second, hi);
    else
      out.emplace_back(lo, hi);
  return out;
}

}  // namespace

void MooncakePlacement::add(Rank rank, std::string_view buffer, const std::string& tensor,
                            const Shape& shape, DType dtype, const Box& box,
                            const StridedView& view) {
  if (box.dims() == 0 || box.empty())
    throw InputError(
        fmt::format("--emit mooncake: expected tensors of one dim or more, none empty, "
                    "found {} of shape [{}]",
                    quoted(tensor, 200), reshard::text(shape)));
  if (!is_contiguous(view))
    throw InputError(fmt::format(
        "--emit mooncake: expected parts that are contiguous and row-major, found {}[{}] in {} of "
        "rank {}, which is not (--emit copies writes strides)",
        tensor, slices_text(box), quoted(buffer, 200), to_int(rank)));
  Tensor& of = tensors_.try_emplace(tensor, Tensor{shape, dtype, {}}).first->second;
  of.is_cut = of.is_cut || box.extents() != shape;
  of.fragments.push_back(fragments_.size());
  places_[{rank, std::string(buffer)}][view.offset] = fragments_.size();
  fragments_.push_back({rank, tensor, box, box.volume() * size_bytes(dtype), {}});
  ranks_.try_emplace(rank);
}

void MooncakePlacement::finish() {
  for (auto& [name, tensor] : tensors_) {
    std::map<Rank, Boxes> boxes;
    for (std::size_t i : tensor.fragments) boxes[fragments_[i].rank].push_back(fragments_[i].box);
    for (const auto& [rank, list] : boxes)
      if (list.size() > 1 && BoxIndex(list).overlap())
        throw InputError(fmt::format(
            "--emit mooncake: expected every element once on a rank, found {} twice on rank {}",
            quoted(name, 200), to_int(rank)));
  }
  find_coordinates();
  for (auto& [name, tensor] : tensors_) find_axes(name, tensor);
  for (Fragment& fragment : fragments_) {
    SortedJson content = json_of(fragment);
    content["schema"] = "weight-placement-fragment";
    fragment.id = id_of(content);
  }
}

void MooncakePlacement::find_coordinates() {
  std::map<Rank, std::set<std::string>> tensors;
  std::map<Rank, std::set<std::pair<std::string, Box>>> boxes;
  for (const Fragment& fragment : fragments_) {
    tensors.try_emplace(fragment.rank);
    if (!tensors_.at(fragment.tensor).is_cut) continue;
    tensors[fragment.rank].insert(fragment.tensor);
    boxes[fragment.rank].emplace(fragment.tensor, fragment.box);
  }
  // By what they have, in the order of their first ranks.
  std::map<std::set<std::string>, std::int64_t> stages;
  std::map<std::int64_t, std::map<std::set<std::pair<std::string, Box>>, Coordinates>> next;
  for (auto& [rank, at] : ranks_) {
    at.pp = stages.try_emplace(tensors[rank], std::ssize(stages)).first->second;
    auto& of_stage = next[at.pp];
    auto [found, is_new] = of_stage.try_emplace(boxes[rank]);
    if (is_new) found->second.tp = std::ssize(of_stage) - 1;
    at.tp = found->second.tp;
    at.dp = found->second.dp++;
    sizes_ = {std::max(sizes_.dp, at.dp + 1), std::max(sizes_.pp, at.pp + 1),
              std::max(sizes_.tp, at.tp + 1)};
  }
}

void MooncakePlacement::find_axes(const std::string& name, Tensor& tensor) const {
  if (tensor.is_cut) {
    for (int d = 0; d < tensor.shape.size() && tensor.split_dim < 0; ++d)
      if (is_split(tensor, d)) tensor.split_dim = d;
    if (tensor.split_dim < 0)
      throw InputError(fmt::format(
          "--emit mooncake: expected each tensor whole on its ranks, or cut along one dim for all "
          "ranks of a pipeline stage or their data parallel copies, found {} of the {}, which is "
          "cut otherwise (--emit copies writes all cuts)",
          quoted(name, 200), side_));
    return;
  }
  std::set<std::int64_t> stages;
  for (std::size_t i : tensor.fragments) stages.insert(ranks_.at(fragments_[i].rank).pp);
  auto in_stages = std::count_if(ranks_.begin(), ranks_.end(),
                                 [&](const auto& of) { return stages.contains(of.second.pp); });
  tensor.is_owned = in_stages != std::ssize(tensor.fragments);
}

// Whether the ranks of every stage that has some of it, one for each tp, have disjoint ranges of
// the dim, which are all of it, each with all that the other dims have.
bool MooncakePlacement::is_split(const Tensor& tensor, int dim) const {
  struct Cut {
    std::map<std::int64_t, std::set<std::pair<std::int64_t, std::int64_t>>> ranges;  // by tp
    std::int64_t elements = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Cut> cuts;  // by stage and copy of it
  for (std::size_t i : tensor.fragments) {
    const Box& box = fragments_[i].box;
    const Coordinates& at = ranks_.at(fragments_[i].rank);
    Cut& cut = cuts[{at.pp, at.dp}];
    cut.ranges[at.tp].emplace(box.lo[dim], box.hi[dim]);
    cut.elements += box.volume();
  }
  for (const auto& [where, cut] : cuts) {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const auto& [tp, ranges] : cut.ranges)
      for (auto range : joined(ranges)) all.push_back(range);
    std::sort(all.begin(), all.end());
    std::int64_t end = 0;
    for (auto [lo, hi] : all) {
      if (lo != end) return false;
      end = hi;
    }
    if (end != tensor.shape[dim] || std::ssize(cut.ranges) != sizes_.tp ||
        cut.elements != element_count(tensor.shape))
      return false;
  }
  return true;
}

const MooncakePlacement::Fragment& MooncakePlacement::at(Rank rank, std::string_view buffer,
                                                         std::int64_t element) const {
  const auto& places = places_.at({rank, std::string(buffer)});
  return fragments_[std::prev(places.upper_bound(element))->second];
}

SortedJson MooncakePlacement::json_of(const Fragment& fragment) const {
  SortedJson out{{"tensor_id", fragment.tensor},
                 {"global_offset", list_of(fragment.box.lo)},
                 {"local_shape", list_of(fragment.box.extents())},
                 {"nbytes", fragment.bytes},
                 {"rank", rank_json(fragment.rank)},
                 {"aliases", SortedJson::array()}};
  if (!fragment.id.empty()) out["placement_fragment_id"] = fragment.id;
  return out;
}

SortedJson MooncakePlacement::rank_json(Rank rank) const {
  const Coordinates& at = ranks_.at(rank);
  return {{"dp", at.dp}, {"ep", 0}, {"pp", at.pp}, {"tp", at.tp}};
}

SortedJson MooncakePlacement::topology_json() const {
  SortedJson participants = SortedJson::array();
  for (const auto& [rank, at] : ranks_)
    participants.push_back({{"participant_id", name_of(rank)}, {"rank", rank_json(rank)}});
  SortedJson out{{"dp_size", sizes_.dp},
                 {"ep_size", 1},
                 {"participants", std::move(participants)},
                 {"pp_size", sizes_.pp},
                 {"tp_size", sizes_.tp}};
  SortedJson content = out;
  content["schema"] = "weight-parallel-topology";
  out["topology_id"] = id_of(content);
  return out;
}

SortedJson MooncakePlacement::tensor_json(const std::string& name, const Tensor& tensor) const {
  SortedJson split =
      tensor.split_dim < 0 ? SortedJson::array() : SortedJson::array({tensor.split_dim});
  const char* whole = tensor.is_owned ? "ownership" : "replicated";
  SortedJson tp{{"kind", "tp"}, {"semantics", tensor.is_cut ? "split" : whole}};
  if (tensor.is_cut) tp["dim"] = tensor.split_dim;
  return {{"tensor_id", name},
          {"global_shape", list_of(tensor.shape)},
          {"dtype", reshard::text(tensor.dtype)},
          {"itemsize", size_bytes(tensor.dtype)},
          {"shard_dims", std::move(split)},
          {"layout_fingerprint", "row-major"},
          {"parallel_axes",
           {{{"kind", "dp"}, {"semantics", whole}},
            {{"kind", "pp"}, {"semantics", "ownership"}},
            std::move(tp)}},
          {"layer_id", nullptr},
          {"expert_id", nullptr}};
}

SortedJson MooncakePlacement::parts_json() const {
  std::map<Rank, std::map<std::string_view, const Fragment*>> by_id;
  for (const Fragment& fragment : fragments_) by_id[fragment.rank][fragment.id] = &fragment;
  SortedJson out = SortedJson::array();
  for (const auto& [rank, fragments] : by_id) {
    SortedJson list = SortedJson::array();
    for (const auto& [id, fragment] : fragments) list.push_back(json_of(*fragment));
    out.push_back({{"participant_id", name_of(rank)},
                   {"rank", rank_json(rank)},
                   {"fragments", std::move(list)}});
  }
  return out;
}

// Participants are sorted by their names.
std::string MooncakePlacement::name_of(Rank rank) const {
  std::size_t digits = fmt::to_string(to_int(ranks_.rbegin()->first)).size();
  return fmt::format("rank-{:0{}}", to_int(rank), digits);
}

std::string MooncakePlacement::text() const {
  SortedJson tensors = SortedJson::array();
  for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor_json(name, tensor));
  SortedJson out{{"resource_id", "reshard"},    {"revision", "1"},
                 {"weight_generation", 1},      {"placement_set_id", side_},
                 {"topology", topology_json()}, {"tensors", std::move(tensors)},
                 {"parts", parts_json()}};
  SortedJson content = out;
  content["schema"] = "complete-weight-placement";
  out["placement_id"] = id_of(content);
  out["resource_kind"] = "model_weight";
  return out.dump();
}

std::string MooncakePlacement::text_of(const Fragment& fragment) const {
  return json_of(fragment).dump();
}

}  // namespace reshard::sim
