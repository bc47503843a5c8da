// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machines/presets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/integers.h"
#include "core/base/printable.h"
#include "core/topology/topology_text.h"
#include "sim/machine_files/formats.h"
#include "sim/machines/network_variant.h"

namespace reshard::sim {

namespace {

constexpr std::string_view kDefaultPreset = "dgx-h100";

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

// A colon before a '/' belongs to the path.
std::string_view without_count(std::string_view spec) {
  std::size_t colon = spec.rfind(':');
  bool counted = colon != std::string_view::npos && spec.find('/', colon) == std::string_view::npos;
  return counted ? spec.substr(0, colon) : spec;
}

ReadTopology read_named(std::string_view name, const std::optional<UsersGpu>& gpu = std::nullopt) {
  if (const EmbeddedText* preset = find_preset(name))
    return read_topology(preset->text, fmt::format("{}.topo", name), gpu);
  if (name.empty() || name.find('\0') != std::string_view::npos || !is_path(name))
    fail_unknown(name);
  std::string path(name);
  return read_topology(read_text_file(path, kMaxLineBytes), shown_path(path), gpu);
}

}  // namespace

std::string read_text(std::istream& in, const std::string& file, std::size_t limit_bytes) {
  std::string text;
  std::size_t line_begin = 0, line = 1;
  std::array<char, 1 << 16> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    auto count = to_index(in.gcount());
    if (text.size() + count > limit_bytes)
      throw InputError(fmt::format("{}: expected at most {} bytes, found more", file, limit_bytes));
    // Only the new block is searched: a long line must not be read again with every block.
    std::size_t from = text.size();
    text.append(block.data(), count);
    for (std::size_t end = std::min(text.find('\n', from), text.size());;
         end = std::min(text.find('\n', end + 1), text.size())) {
      if (end - line_begin > kMaxLineBytes)
        throw InputError(
            fmt::format("{}:{}: expected lines of at most 64 MiB, found a longer one", file, line));
      if (end == text.size()) break;
      line_begin = end + 1;
      ++line;
    }
  }
  if (in.bad())
    throw InputError(
        fmt::format("{}: expected a readable file, found an error while reading", file));
  return utf8_text(std::move(text));
}

std::string read_text_file(const std::string& path, std::size_t limit_bytes) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(fmt::format("{}: expected a file, found none", shown_path(path)));
  if (status.type() == std::filesystem::file_type::directory)
    throw InputError(fmt::format("{}: expected a file, found a directory", shown_path(path)));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(fmt::format("{}: expected a readable file, found: {}", shown_path(path),
                                 std::strerror(errno)));
  return read_text(file, shown_path(path), limit_bytes);
}

std::vector<PresetInfo> presets() {
  std::vector<PresetInfo> out;
  for (const EmbeddedText& preset : embedded_topologies())
    out.push_back({std::string(preset.name), first_comment(preset.text), std::string(preset.text)});
  std::sort(out.begin(), out.end(),
            [](const PresetInfo& a, const PresetInfo& b) { return a.name < b.name; });
  return out;
}

NamedTopology find_description(std::string_view spec) {
  NetworkVariant variant = take_network_variant(spec);
  std::string_view name = without_count(spec);
  ReadTopology read = read_named(name, variant.gpu);
  NamedTopology out{std::move(read.description), std::nullopt, std::move(read.doubts)};
  change_network(out.description, variant);
  if (name.size() == spec.size()) return out;
  std::string_view digits = spec.substr(name.size() + 1);
  std::int64_t count = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw InputError(fmt::format("topology: expected a count after '{}:', found {}",
                                 out.description.name, quoted(digits)));
  out.count = count;
  return out;
}

std::string file_of(std::string_view spec) {
  take_network_variant(spec);
  std::string_view name = without_count(spec);
  return find_preset(name) != nullptr ? std::string() : std::string(name);
}

Topology find_topology(std::string_view spec) {
  NamedTopology named = find_description(spec);
  return build_topology(named.description, named.count);
}

Topology default_topology(std::int64_t devices_needed) {
  TopologyDescription description = read_named(kDefaultPreset).description;
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
