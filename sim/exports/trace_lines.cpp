// SPDX-License-Identifier: BSD-3-Clause
// The requests of a plan as lines of a trace (traces/README.md), to replay them among
// other things. The plan's steps are not part of it.
#include <map>

#include <fmt/format.h>

#include "sim/exports/exports.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

// Values that a header names, so that each is written once.
class Named {
 public:
  explicit Named(std::string_view prefix) : prefix_(prefix) {}

  std::string name_of(const std::string& key, const Json& value) {
    auto [at, is_new] = names_.try_emplace(key, "");
    if (is_new) {
      at->second = fmt::format("{}{}", prefix_, names_.size() - 1);
      json_[at->second] = value;
    }
    return at->second;
  }
  const Json& json() const { return json_; }

 private:
  std::string_view prefix_;
  std::map<std::string, std::string> names_;
  Json json_ = Json::object();
};

class TraceLines {
 public:
  explicit TraceLines(const ExportInput& input) : input_(input) {}

  std::string text() {
    std::string operations = lines();
    Json header = {{"reshard_trace", 1}};
    if (!input_.topology.empty()) header["topology"] = input_.topology;
    header["meshes"] = meshes_.json();
    if (!layouts_.json().empty()) header["layouts"] = layouts_.json();
    return line(header) + operations;
  }

 private:
  static std::string line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string lines() {
    const Plan& plan = input_.plan;
    if (plan.stages.empty())
      return line({{"op", "redistribute"},
                   {"requests", list_json(plan.tensors, [&](auto& of) { return json(of); })}});
    std::string out;
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      const Stage& stage = plan.stages[i];
      Json operation = {{"op", "redistribute"}, {"id", stage_name(i)}};
      for (std::int32_t before : stage.after)
        operation["after"].push_back(stage_name(static_cast<std::size_t>(before)));
      operation["requests"] =
          list_json(stage.tensors, [&](TensorId id) { return json(plan.tensors[id]); });
      out += line(operation);
    }
    return out;
  }

  static std::string stage_name(std::size_t stage) { return fmt::format("stage {}", stage); }

  Json json(const Request& request) {
    Json out = {{"shape", values_json(request.shape())}, {"dtype", reshard::text(request.dtype())},
                {"from", layout(request.source())},      {"to", layout(request.destination())},
                {"mesh", mesh(request.source())},        {"to_mesh", mesh(request.destination())}};
    if (!request.name().empty()) out["name"] = request.name();
    return out;
  }

  // With explicit boxes, only the ranks that have some: a stage is then planned like others.
  std::string mesh(const Layout& of) {
    const Mesh& whole = of.mesh();
    std::vector<Rank> ranks;
    for (std::int32_t position = 0; position < whole.size() && !of.is_product(); ++position)
      if (element_count(of.local_shape(position)) > 0) ranks.push_back(whole.rank_at(position));
    if (ranks.empty()) return named(shape_text(whole), whole.ranks());
    return named(fmt::to_string(ranks.size()), ranks);
  }
  std::string named(const std::string& shape, const std::vector<Rank>& of) {
    std::string ranks = ranks_text(of);
    return meshes_.name_of(shape + " on " + ranks, {{"mesh", shape}, {"ranks", ranks}});
  }

  // The boxes of many ranks are long, and those of many tensors are equal.
  std::string layout(const Layout& of) {
    std::string placements = of.placements_text();
    return of.is_product() ? placements : layouts_.name_of(placements, placements);
  }

  const ExportInput& input_;
  Named meshes_{"m"}, layouts_{"l"};
};

}  // namespace

Exported export_trace(const ExportInput& input) { return {TraceLines(input).text()}; }

}  // namespace reshard::sim
