// SPDX-License-Identifier: BSD-3-Clause
// The requests of a plan as a trace of one line (traces/README.md), for whoever replays them among
// other things. The plan's steps are not part of it.
#include <map>

#include <fmt/format.h>

#include "sim/exports/exports.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

class Meshes {
 public:
  std::string name_of(const Mesh& mesh) {
    auto [at, is_new] = names_.try_emplace({shape_text(mesh), ranks_text(mesh.ranks())}, "");
    if (is_new) {
      at->second = fmt::format("m{}", names_.size() - 1);
      json_[at->second] = {{"mesh", at->first.first}, {"ranks", at->first.second}};
    }
    return at->second;
  }
  const Json& json() const { return json_; }

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_;
  Json json_ = Json::object();
};

}  // namespace

Exported export_trace(const ExportInput& input) {
  Meshes meshes;
  Json requests = list_json(input.plan.tensors, [&](const Request& request) -> Json {
    const Layout &from = request.source(), &to = request.destination();
    Json out = {{"shape", values_json(request.shape())}, {"dtype", text(request.dtype())},
                {"from", from.placements_text()},        {"to", to.placements_text()},
                {"mesh", meshes.name_of(from.mesh())},   {"to_mesh", meshes.name_of(to.mesh())}};
    if (!request.name().empty()) out["name"] = request.name();
    return out;
  });
  auto line = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  return {line({{"reshard_trace", 1}, {"meshes", meshes.json()}}) +
          line({{"op", "redistribute"}, {"requests", std::move(requests)}})};
}

}  // namespace reshard::sim
