// SPDX-License-Identifier: BSD-3-Clause
// The fields of a config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/dtype.h"

namespace reshard::sim {

// Reads the object of a config.json. Throws InputError for any other text.
nlohmann::json read_config(std::string_view text, const std::string& file);

// The fields of a model of text. A multimodal model has them in an inner object, such as
// text_config; the outer object may repeat a field but not contradict it. A null field counts as
// missing. Messages begin with "FILE: KEY: " or "FILE: text_config: KEY: ".
class ConfigFields {
 public:
  static constexpr std::int64_t kMostSize = std::int64_t{1} << 24;
  // Keeps a reference to `whole`.
  ConfigFields(const nlohmann::json& whole, const std::string& file);

  // The name of the inner object; empty if there is none.
  std::string_view part() const { return part_; }
  const std::string& place() const { return place_; }
  const nlohmann::json* find(std::string_view key) const;
  // A field that may be in the outer object if the inner one does not have it.
  const nlohmann::json* find_anywhere(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low,
                                      std::int64_t high) const;
  std::int64_t size(std::string_view key, std::int64_t most = kMostSize) const;  // at least 1
  std::int64_t size_or(std::string_view key, std::int64_t absent) const;         // at least 0
  // At least 0, and 0 for null. Refuses a config without the field: families' defaults differ.
  std::int64_t stated(std::string_view key) const;
  bool flag(std::string_view key, bool absent) const;
  std::string word(std::string_view key, std::string_view absent) const;
  std::vector<std::int64_t> numbers(std::string_view key) const;
  // The dtype of the weights before they are quantised. It is stated as dtype or torch_dtype, which
  // must not differ, in the inner object or else in the outer one. Nothing for "auto".
  std::optional<DType> dtype() const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view found) const;

 private:
  const nlohmann::json& whole_;
  const nlohmann::json* fields_;
  std::string_view part_;
  std::string place_;
};

}  // namespace reshard::sim
