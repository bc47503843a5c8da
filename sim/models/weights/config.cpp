// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/config.h"

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/inputs/json_reader.h"
#include "sim/models/weights/families.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;
constexpr JsonLimits kConfigLimits{32, std::int64_t{1} << 20, 1 << 16};

// Whether the object is about a model for several kinds of input, of which only the text is read.
const Json& text_part(const Json& config, Model& model) {
  auto nested = config.find("text_config");
  if (nested == config.end() || !nested->is_object()) return config;
  if (config.contains("num_hidden_layers")) return config;
  model.notes.push_back("only the weights of text_config, not those of other inputs");
  return *nested;
}

// FP8 by blocks can be moved as it is; of other quantisations only the weights before it are known.
void read_quantisation(const ConfigFields& config, Model& model) {
  const Json* found = config.find("quantization_config");
  if (found == nullptr || !found->is_object()) return;
  auto method = found->find("quant_method");
  auto block = found->find("weight_block_size");
  std::string name =
      method != found->end() && method->is_string() ? method->get<std::string>() : "unnamed";
  if (name == "fp8" && block != found->end() && block->is_array() && block->size() == 2) {
    auto rows = integer_in((*block)[0], 1, 1 << 20), columns = integer_in((*block)[1], 1, 1 << 20);
    if (!rows || !columns) config.fail("weight_block_size", "two numbers such as [128, 128]");
    model.scale_block = {*rows, *columns};
    return;
  }
  model.notes.push_back(
      fmt::format("weights before quantisation ({}): what it makes of them is not known here",
                  reshard::quoted(name)));
}

}  // namespace

ConfigFields::ConfigFields(const Json& object, const std::string& file)
    : object_(object), file_(file) {}

const Json* ConfigFields::find(std::string_view key) const {
  auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigFields::fail(std::string_view key, std::string_view expected) const {
  const Json* found = find(key);
  throw InputError(fmt::format("{}: {}: expected {}, found {}", file_, key, expected,
                               found == nullptr ? "nothing" : shown(*found)));
}

std::int64_t ConfigFields::size(std::string_view key) const {
  const Json* found = find(key);
  auto number = found == nullptr ? std::nullopt : integer_in(*found, 1, kMostSize);
  if (!number) fail(key, fmt::format("a number from 1 to {}", kMostSize));
  return *number;
}

std::int64_t ConfigFields::size(std::string_view key, std::int64_t absent) const {
  const Json* found = find(key);
  if (found == nullptr) return absent;
  auto number = integer_in(*found, 0, kMostSize);
  if (!number) fail(key, fmt::format("a number from 0 to {}", kMostSize));
  return *number;
}

bool ConfigFields::flag(std::string_view key, bool absent) const {
  const Json* found = find(key);
  if (found == nullptr) return absent;
  if (!found->is_boolean()) fail(key, "true or false");
  return found->get<bool>();
}

std::string ConfigFields::word(std::string_view key, std::string_view absent) const {
  const Json* found = find(key);
  if (found == nullptr) return std::string(absent);
  if (!found->is_string()) fail(key, "a text");
  return found->get<std::string>();
}

std::vector<std::int64_t> ConfigFields::numbers(std::string_view key) const {
  const Json* found = find(key);
  std::vector<std::int64_t> out;
  if (found == nullptr) return out;
  if (!found->is_array()) fail(key, "a list of numbers");
  for (const Json& each : *found) {
    auto number = integer_in(each, 0, kMostSize);
    if (!number) fail(key, "a list of numbers");
    out.push_back(*number);
  }
  return out;
}

Model parse_config(std::string_view text, const std::string& file) {
  Json whole = read_json<Json>(text, file, kConfigLimits);
  if (!whole.is_object())
    throw InputError(fmt::format("{}: expected one JSON object, found {}", file, shown(whole)));
  Model model;
  model.file = file;
  ConfigFields config(text_part(whole, model), file);
  model.family = config.word("model_type", "");
  read_quantisation(&config.object() == &whole ? config : ConfigFields(whole, file), model);
  if (!model.scale_block && &config.object() != &whole) read_quantisation(config, model);
  add_weights(config, model);
  return model;
}

void quantise(Model& model) {
  RESHARD_CHECK(model.scale_block, "a model without a block of scales");
  auto change = [](WeightGroup& group) {
    for (Weight& weight : group.weights)
      if (has_scales(weight)) weight.dtype = DType::F8E4M3;
  };
  for (WeightGroup& layer : model.layers) change(layer);
}

}  // namespace reshard::sim
