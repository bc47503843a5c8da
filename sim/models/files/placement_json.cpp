// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/placement_json.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/inputs/json_reader.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {
namespace {

constexpr JsonLimits kPlacementLimits{16, std::int64_t{1} << 27, 4096};
constexpr std::string_view kText = "a text";

class PlacementReader {
 public:
  explicit PlacementReader(const std::string& place) : place_(place) {}

  PlacementManifest read(std::string_view text) {
    auto json = read_json<TraceJson>(text, place_, kPlacementLimits);
    read_object(json, place_, "a placement manifest", [&](TraceFields& fields) {
      if (std::string kind = words(fields, "resource_kind", place_); kind != "model_weight")
        fail(place_, "resource_kind", "\"model_weight\"", reshard::quoted(kind));
      for (std::string_view id : {"resource_id", "revision", "placement_set_id", "placement_id"})
        words(fields, id, place_);
      const TraceJson& generation = fields.required("weight_generation", "an integer from 0");
      if (!generation.is_number_unsigned())
        fields.fail("weight_generation", "an integer from 0", generation);
      read_object(fields.required("topology", "an object"), place_ + ": topology", "a topology",
                  [&](TraceFields& topology) { read_topology(topology); });
      for_each(fields, "tensors", place_, [&](const TraceJson& tensor, const std::string& where) {
        read_object(tensor, where, "a tensor", [&](TraceFields& of) { read_tensor(of, where); });
      });
      for_each(fields, "parts", place_, [&](const TraceJson& part, const std::string& where) {
        read_object(part, where, "a part", [&](TraceFields& of) { read_part(of, where); });
      });
    });
    if (parts_.size() != out_.participants.size())
      fail(place_, "parts",
           fmt::format("one for each of {} participants", out_.participants.size()),
           fmt::to_string(parts_.size()));
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(std::string_view where, std::string_view field,
                                std::string_view expected, std::string_view found) {
    throw InputError(fmt::format("{}: {}: expected {}, found {}", where, field, expected, found));
  }

  // ---- JSON

  template <class Read>
  static void read_object(const TraceJson& json, const std::string& where, std::string_view what,
                          Read&& read) {
    if (!json.is_object())
      throw InputError(fmt::format("{}: expected {}, found {}", where, what, shown(json)));
    TraceFields fields(json, where);
    read(fields);
    fields.refuse_others(what);
  }
  template <class Read>
  static void for_each(TraceFields& fields, std::string_view key, const std::string& where,
                       Read&& read) {
    const TraceJson& list = fields.required(key, "a list");
    if (!list.is_array()) fields.fail(key, "a list", list);
    std::size_t i = 0;
    for (const TraceJson& entry : list) read(entry, fmt::format("{}: {}[{}]", where, key, i++));
  }
  static std::string words(TraceFields& fields, std::string_view key, std::string_view where) {
    std::string out = fields.string(key, kText);
    if (out.empty()) fail(where, key, kText, "an empty one");
    return out;
  }
  static DimVector integers(TraceFields& fields, std::string_view key, std::int64_t least) {
    const std::string what = fmt::format("a list of at most 8 integers from {}", least);
    const TraceJson& list = fields.required(key, what);
    if (!list.is_array() || list.size() > kMaxDims) fields.fail(key, what, list);
    DimVector out;
    for (const TraceJson& entry : list) {
      auto number = integer_in(entry, least, kMaxBytes);
      if (!number) fields.fail(key, what, entry);
      out.push_back(*number);
    }
    return out;
  }
  static void optional_integer(TraceFields& fields, std::string_view key) {
    const TraceJson& value = fields.required(key, "an integer from 0 or null");
    if (!value.is_null() && !integer_in(value, 0, kMaxBytes))
      fields.fail(key, "an integer from 0 or null", value);
  }
  // Older files have no cp.
  static PlacementCoordinates coordinates(TraceFields& fields, const std::string& where) {
    PlacementCoordinates out{};
    read_object(
        fields.required("rank", "an object"), where + ": rank", "a rank", [&](TraceFields& rank) {
          for (std::size_t a = 0; a < out.size(); ++a)
            out[a] = kPlacementAxes[a] == "cp" ? rank.integer("cp", 0, kMaxRanks - 1, 0)
                                               : rank.integer(kPlacementAxes[a], 0, kMaxRanks - 1);
        });
    return out;
  }

  // ---- what they mean

  void read_topology(TraceFields& fields) {
    const std::string where = place_ + ": topology";
    words(fields, "topology_id", where);
    PlacementCoordinates sizes{};
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      std::string key = fmt::format("{}_size", kPlacementAxes[a]);
      sizes[a] = kPlacementAxes[a] == "cp" ? fields.integer(key, 1, kMaxRanks, 1)
                                           : fields.integer(key, 1, kMaxRanks);
    }
    std::set<PlacementCoordinates> known;
    for_each(fields, "participants", where, [&](const TraceJson& json, const std::string& at) {
      read_object(json, at, "a participant", [&](TraceFields& of) {
        std::string name = words(of, "participant_id", at);
        PlacementCoordinates rank = coordinates(of, at);
        for (std::size_t a = 0; a < rank.size(); ++a)
          if (rank[a] >= sizes[a])
            fail(at, "rank",
                 fmt::format("{} below {}_size {}", kPlacementAxes[a], kPlacementAxes[a], sizes[a]),
                 fmt::to_string(rank[a]));
        if (!known.insert(rank).second) fail(at, "rank", "each rank once", "one twice");
        if (!participants_.emplace(name, out_.participants.size()).second)
          fail(at, "participant_id", "each participant once",
               reshard::quoted(name, 200) + " twice");
        out_.participants.push_back(rank);
      });
    });
    if (out_.participants.empty()) fail(where, "participants", "at least one", "none");
  }

  void read_tensor(TraceFields& fields, const std::string& where) {
    PlacementTensor out{{words(fields, "tensor_id", where), integers(fields, "global_shape", 1),
                         parse_dtype(words(fields, "dtype", where), where + ": dtype")}};
    check_tensor(out.tensor, where);
    if (out.tensor.shape.size() == 0) fail(where, "global_shape", "at least one dim", "none");
    if (std::int64_t size = fields.integer("itemsize", 1, 64); size != size_bytes(out.tensor.dtype))
      fail(where, "itemsize",
           fmt::format("{}, the bytes of a {}", size_bytes(out.tensor.dtype),
                       reshard::text(out.tensor.dtype)),
           fmt::to_string(size));
    integers(fields, "shard_dims", 0);
    words(fields, "layout_fingerprint", where);
    optional_integer(fields, "layer_id");
    optional_integer(fields, "expert_id");
    for_each(fields, "parallel_axes", where, [&](const TraceJson& axis, const std::string& at) {
      read_object(axis, at, "an axis", [&](TraceFields& of) { read_axis(of, at, out); });
    });
    if (!tensors_.emplace(out.tensor.name, out_.tensors.size()).second)
      fail(where, "tensor_id", "each tensor once",
           reshard::quoted(out.tensor.name, 200) + " twice");
    out_.tensors.push_back(std::move(out));
  }

  static void read_axis(TraceFields& fields, const std::string& where, PlacementTensor& out) {
    std::string kind = words(fields, "kind", where), means = words(fields, "semantics", where);
    auto found = std::find(kPlacementAxes.begin(), kPlacementAxes.end(), kind);
    if (found == kPlacementAxes.end())
      fail(where, "kind", "dp, tp, pp, ep or cp", reshard::quoted(kind));
    auto axis = static_cast<std::size_t>(found - kPlacementAxes.begin());
    if (means == "split")
      fields.integer("dim", 0, out.tensor.shape.size() - 1);
    else if (means == "replicated")
      out.is_replicated[axis] = true;
    else if (means == "ownership")
      out.is_owned[axis] = true;
    else
      fail(where, "semantics", "split, replicated or ownership", reshard::quoted(means));
  }

  void read_part(TraceFields& fields, const std::string& where) {
    std::string name = words(fields, "participant_id", where);
    auto participant = participants_.find(name);
    if (participant == participants_.end())
      fail(where, "participant_id", "a participant of the topology", reshard::quoted(name, 200));
    if (!parts_.insert(participant->second).second)
      fail(where, "participant_id", "each participant once", reshard::quoted(name, 200) + " twice");
    check_rank(fields, where, participant->second);
    for_each(fields, "fragments", where, [&](const TraceJson& json, const std::string& at) {
      read_object(json, at, "a fragment",
                  [&](TraceFields& of) { read_fragment(of, at, participant->second); });
    });
  }

  void check_rank(TraceFields& fields, const std::string& where, std::size_t participant) const {
    if (coordinates(fields, where) != out_.participants[participant])
      fail(where, "rank", "that of the participant in the topology", "another one");
  }

  void read_fragment(TraceFields& fields, const std::string& where, std::size_t participant) {
    words(fields, "placement_fragment_id", where);
    std::string name = words(fields, "tensor_id", where);
    auto found = tensors_.find(name);
    if (found == tensors_.end())
      fail(where, "tensor_id", "one of the tensors", reshard::quoted(name, 200));
    PlacementTensor& tensor = out_.tensors[found->second];
    check_rank(fields, where, participant);
    Box box = read_box(fields, where, tensor.tensor.shape);
    std::int64_t bytes = box.volume() * size_bytes(tensor.tensor.dtype);
    if (std::int64_t given = fields.integer("nbytes", 1, kMaxBytes); given != bytes)
      fail(where, "nbytes", fmt::format("{}, the bytes of local_shape", bytes),
           fmt::to_string(given));
    if (fields.has("pipeline_stage_id")) optional_integer(fields, "pipeline_stage_id");
    read_aliases(fields, where, tensor);
    tensor.fragments.push_back({participant, box});
  }

  static Box read_box(TraceFields& fields, const std::string& where, const Shape& shape) {
    DimVector lo = integers(fields, "global_offset", 0),
              extents = integers(fields, "local_shape", 1);
    bool fits = lo.size() == shape.size() && extents.size() == shape.size();
    for (int d = 0; fits && d < lo.size(); ++d)
      fits = lo[d] <= shape[d] && extents[d] <= shape[d] - lo[d];
    if (!fits)
      fail(where, "local_shape", fmt::format("a box within [{}]", reshard::text(shape)),
           fmt::format("[{}] at [{}]", reshard::text(extents), reshard::text(lo)));
    return box_at(lo, extents);
  }

  // All fragments of a tensor must name the same aliases.
  static void read_aliases(TraceFields& fields, const std::string& where, PlacementTensor& tensor) {
    const TraceJson& list = fields.required("aliases", "a list of texts");
    std::vector<std::string> out;
    if (!list.is_array()) fields.fail("aliases", "a list of texts", list);
    for (const TraceJson& name : list) {
      if (!name.is_string()) fields.fail("aliases", "a list of texts", name);
      out.push_back(name.get<std::string>());
    }
    std::sort(out.begin(), out.end());
    if (std::adjacent_find(out.begin(), out.end()) != out.end())
      fields.fail("aliases", "each name once", list);
    if (!out.empty() &&
        (out.size() < 2 || !std::binary_search(out.begin(), out.end(), tensor.tensor.name)))
      fail(where, "aliases", "the fragment's tensor and another one", shown(list));
    if (!tensor.fragments.empty() && out != tensor.aliases)
      fail(where, "aliases", "the same for all fragments of a tensor", "others");
    tensor.aliases = std::move(out);
  }

  const std::string& place_;
  PlacementManifest out_;
  std::map<std::string, std::size_t> participants_, tensors_;  // by name
  std::set<std::size_t> parts_;
};

}  // namespace

PlacementManifest parse_placement_json(std::string_view text, const std::string& place) {
  return PlacementReader(place).read(text);
}

}  // namespace reshard::sim
