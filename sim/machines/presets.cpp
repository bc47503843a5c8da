// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machines/presets.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "sim/machines/embedded.h"
#include "sim/machines/text_file.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kDefaultPreset = "dgx-h100";
constexpr std::size_t kMaxFileBytes = kMaxLineBytes;

std::string first_comment(std::string_view text) {
  std::size_t begin = text.find("\n# ");
  if (begin == std::string_view::npos) return {};
  begin += 3;
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

const EmbeddedText* find_preset(std::string_view name) {
  for (const EmbeddedText& preset : embedded_topologies())
    if (preset.name == name) return &preset;
  return nullptr;
}

[[noreturn]] void fail_unknown(std::string_view name) {
  std::string names;
  for (const PresetInfo& preset : presets()) names += preset.name + ", ";
  throw InputError(fmt::format("topology: expected one of {}or a path to a topology file, found {}",
                               names, quoted(name)));
}

bool is_path(std::string_view name) {
  if (name.find('/') != std::string_view::npos || name.ends_with(".topo")) return true;
  std::error_code error;
  return std::filesystem::is_regular_file(std::string(name), error);
}

TopologyDescription description_of(std::string_view name) {
  if (const EmbeddedText* preset = find_preset(name))
    return parse_topology(preset->text, fmt::format("{}.topo", name));
  if (name.empty() || name.find('\0') != std::string_view::npos || !is_path(name))
    fail_unknown(name);
  std::string path(name);
  return parse_topology(read_text_file(path, kMaxFileBytes), path);
}

}  // namespace

std::vector<PresetInfo> presets() {
  std::vector<PresetInfo> out;
  for (const EmbeddedText& preset : embedded_topologies())
    out.push_back({std::string(preset.name), first_comment(preset.text), std::string(preset.text)});
  std::sort(out.begin(), out.end(),
            [](const PresetInfo& a, const PresetInfo& b) { return a.name < b.name; });
  return out;
}

NamedTopology find_description(std::string_view spec) {
  std::size_t colon = spec.rfind(':');
  // A colon before a '/' belongs to the path.
  if (colon == std::string_view::npos || spec.find('/', colon) != std::string_view::npos)
    return {description_of(spec), std::nullopt};
  std::string_view digits = spec.substr(colon + 1);
  NamedTopology out{description_of(spec.substr(0, colon)), std::nullopt};
  std::int64_t count = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw InputError(fmt::format("topology: expected a count behind '{}:', found {}",
                                 out.description.name, quoted(digits)));
  out.count = count;
  return out;
}

Topology find_topology(std::string_view spec) {
  NamedTopology named = find_description(spec);
  return build_topology(named.description, named.count);
}

Topology default_topology(std::int64_t devices_needed) {
  TopologyDescription description = description_of(kDefaultPreset);
  return build_topology(
      description,
      std::max<std::int64_t>(1, ceil_div(devices_needed, std::int64_t{description.devices})));
}

void require_devices(const Topology& topology, std::int64_t highest_rank) {
  if (highest_rank < topology.devices()) return;
  throw InputError(fmt::format(
      "topology {}: expected a device for every rank, found {} device{} and rank {}",
      topology.name(), topology.devices(), topology.devices() == 1 ? "" : "s", highest_rank));
}

}  // namespace reshard::sim
