// SPDX-License-Identifier: BSD-3-Clause
// The families of models: which weights they have, and how their config.json names the sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/models/weights/model.h"

namespace reshard::sim {

// Fields of a config.json; null is as good as nothing. All but find() throw InputError
// "FILE: KEY: ...".
class ConfigFields {
 public:
  static constexpr std::int64_t kMostSize = std::int64_t{1} << 24;
  // Keeps references to both.
  ConfigFields(const nlohmann::json& object, const std::string& file);

  const nlohmann::json& object() const { return object_; }
  const nlohmann::json* find(std::string_view key) const;
  std::int64_t size(std::string_view key) const;  // at least 1
  std::int64_t size(std::string_view key, std::int64_t absent) const;
  bool flag(std::string_view key, bool absent) const;
  std::string word(std::string_view key, std::string_view absent) const;
  std::vector<std::int64_t> numbers(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  const nlohmann::json& object_;
  const std::string& file_;
};

// Fills the sizes and weights of model.family. Throws InputError for one that is not known.
void add_weights(const ConfigFields& config, Model& model);

}  // namespace reshard::sim
