// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/config_fields.h"

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

using ConfigJson = nlohmann::json;
constexpr JsonLimits kConfigLimits{32, std::int64_t{1} << 20, 1 << 16};
constexpr std::string_view kParts[] = {"text_config", "language_config", "llm_config"};

}  // namespace

ConfigJson read_config(std::string_view text, const std::string& file) {
  ConfigJson out = read_json<ConfigJson>(text, file, kConfigLimits);
  if (!out.is_object())
    throw InputError(
        fmt::format("{}: expected the object of a config.json, found {}", file, shown(out)));
  return out;
}

ConfigFields::ConfigFields(const ConfigJson& whole, const std::string& file)
    : whole_(whole), fields_(&whole), place_(file) {
  for (std::string_view part : kParts) {
    auto found = whole.find(part);
    if (found == whole.end() || !found->is_object()) continue;
    fields_ = &*found;
    part_ = part;
    place_ = fmt::format("{}: {}", file, part);
    break;
  }
}

const ConfigJson* ConfigFields::find(std::string_view key) const {
  auto inner = fields_->find(key);
  if (inner == fields_->end() || inner->is_null()) return nullptr;
  auto outer = whole_.find(key);
  // Both objects have their own model_type.
  if (!part_.empty() && key != "model_type" && outer != whole_.end() && !outer->is_null() &&
      *outer != *inner)
    fail(key, fmt::format("the same as outside ({})", shown(*outer)), shown(*inner));
  return &*inner;
}

const ConfigJson* ConfigFields::find_anywhere(std::string_view key) const {
  if (const ConfigJson* own = find(key)) return own;
  auto outer = whole_.find(key);
  return outer == whole_.end() || outer->is_null() ? nullptr : &*outer;
}

void ConfigFields::fail(std::string_view key, std::string_view expected) const {
  const ConfigJson* found = find(key);
  fail(key, expected, found == nullptr ? "no such field" : shown(*found));
}

void ConfigFields::fail(std::string_view key, std::string_view expected,
                        std::string_view found) const {
  throw InputError(fmt::format("{}: {}: expected {}, found {}", place_, key, expected, found));
}

std::optional<std::int64_t> ConfigFields::integer(std::string_view key, std::int64_t low,
                                                  std::int64_t high) const {
  const ConfigJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  auto found = integer_in(*value, low, high);
  if (!found) fail(key, fmt::format("an integer from {} to {}", low, high));
  return found;
}

std::int64_t ConfigFields::size(std::string_view key, std::int64_t most) const {
  auto found = integer(key, 1, most);
  if (!found) fail(key, fmt::format("an integer from 1 to {}", most));
  return *found;
}

std::int64_t ConfigFields::size_or(std::string_view key, std::int64_t absent) const {
  return integer(key, 0, kMostSize).value_or(absent);
}

std::int64_t ConfigFields::stated(std::string_view key) const {
  if (!fields_->contains(key)) fail(key, "an integer from 0, or null");
  return size_or(key, 0);
}

bool ConfigFields::flag(std::string_view key, bool absent) const {
  const ConfigJson* found = find(key);
  if (found == nullptr) return absent;
  if (!found->is_boolean()) fail(key, "true or false");
  return found->get<bool>();
}

std::string ConfigFields::word(std::string_view key, std::string_view absent) const {
  const ConfigJson* found = find(key);
  if (found == nullptr) return std::string(absent);
  if (!found->is_string()) fail(key, "a text");
  return found->get<std::string>();
}

std::optional<DType> ConfigFields::dtype() const {
  std::optional<DType> out;
  for (const bool is_outer : {false, true}) {
    if (out) break;
    for (const char* key : {"dtype", "torch_dtype"}) {
      const ConfigJson* found = is_outer ? find_anywhere(key) : find(key);
      if (found == nullptr || *found == "auto") continue;
      if (!found->is_string()) fail(key, "a text", shown(*found));
      DType dtype = parse_dtype(found->get<std::string>(), fmt::format("{}: {}", place_, key));
      if (out && *out != dtype)
        fail(key, fmt::format("{}, as dtype says", reshard::text(*out)), reshard::text(dtype));
      out = dtype;
    }
  }
  return out;
}

std::vector<std::int64_t> ConfigFields::numbers(std::string_view key) const {
  const ConfigJson* found = find(key);
  std::vector<std::int64_t> out;
  if (found == nullptr) return out;
  if (!found->is_array()) fail(key, "a list of numbers");
  for (const ConfigJson& each : *found) {
    auto number = integer_in(each, 0, kMostSize);
    if (!number) fail(key, "a list of numbers");
    out.push_back(*number);
  }
  return out;
}

}  // namespace reshard::sim
