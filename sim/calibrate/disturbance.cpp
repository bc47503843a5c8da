// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/disturbance.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kKey = "\"reshard_overlap\"";

std::int64_t time_of(const Json& json, const char* key, const std::string& file) {
  auto it = json.find(key);
  std::optional<std::int64_t> time_ps;
  if (it != json.end()) time_ps = integer_in(*it, 1, kMaxDurationPs);
  if (!time_ps)
    throw InputError(fmt::format("{}: {}: expected a time of at least 1 ps, found {}", file, key,
                                 it == json.end() ? "no such field" : shown(*it)));
  return *time_ps;
}

// The share of its rate at which work that takes `alone` on its own takes `with` next to other work
// that runs for `other`: the share holds until the shorter of the two ends.
std::int64_t share_of(std::int64_t alone, std::int64_t with, std::int64_t other) {
  Int128 together = std::min(with, other), done = Int128{alone} - (with - together);
  return static_cast<std::int64_t>(
      std::min<Int128>(kRatioOne, (done * kRatioOne + together / 2) / together));
}

}  // namespace

bool is_overlap(std::string_view text) {
  return text.substr(0, 4096).find(kKey) != std::string_view::npos;
}

MeasuredOverlap parse_overlap(std::string_view text, const std::string& file) {
  Json json = read_json_or_other<Json>(text, file, kJsonFile);
  if (!json.is_object())
    throw InputError(fmt::format("{}: expected one JSON object, found other text", file));
  auto version = json.find("reshard_overlap");
  if (version == json.end() || *version != 1)
    throw InputError(fmt::format("{}: reshard_overlap: expected 1, found another version", file));
  auto transport = json.find("transport");
  std::optional<TransportKind> kind;
  if (transport != json.end() && transport->is_string())
    kind = find_transport(transport->get_ref<const std::string&>());
  if (!kind || *kind == TransportKind::Ideal)
    throw InputError(fmt::format("{}: transport: expected nccl or copy-engine, found {}", file,
                                 transport == json.end() ? "no such field" : shown(*transport)));
  return {*kind, time_of(json, "compute_alone_ps", file),
          time_of(json, "communication_alone_ps", file), time_of(json, "compute_ps", file),
          time_of(json, "communication_ps", file)};
}

std::vector<Fitted> fit_overlap(TopologyDescription& machine, const MeasuredOverlap& measured,
                                const std::string& file) {
  bool nccl = measured.transport == TransportKind::Nccl;
  std::vector<Fitted> out;
  auto set = [&](Figure which, std::int64_t share) {
    const FigureRow& row = figure_rows()[to_index(which)];
    if (share < row.least)
      throw InputError(
          fmt::format("{}: expected times that some share of the rate explains, found {} of {}",
                      file, decimal_text(share, kRatioOne, 3), row.name));
    out.push_back({std::string(row.name), std::string(row.meaning), row.unit,
                   machine.machine.figure(which).value_or(kRatioOne), share});
    machine.machine.set(which, share);
  };
  set(nccl ? Figure::ComputeUnderNccl : Figure::ComputeUnderCopy,
      share_of(measured.compute_alone_ps, measured.compute_ps, measured.communication_ps));
  set(nccl ? Figure::NcclUnderCompute : Figure::CopyUnderCompute,
      share_of(measured.communication_alone_ps, measured.communication_ps, measured.compute_ps));
  return out;
}

}  // namespace reshard::sim
