// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/config.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/inputs/json_reader.h"
#include "sim/models/weights/families.h"

namespace reshard::sim {
namespace {

using ConfigJson = nlohmann::json;

// Weights in FP8 with block scales can be moved as they are. For other quantisations only the
// weights before quantisation are known.
void read_quantisation(const ConfigFields& config, Model& model) {
  const ConfigJson* found = config.find_anywhere("quantization_config");
  if (found == nullptr) return;
  if (!found->is_object()) config.fail("quantization_config", "an object", shown(*found));
  auto method = found->find("quant_method");
  auto block = found->find("weight_block_size");
  std::string name =
      method != found->end() && method->is_string() ? method->get<std::string>() : "unnamed";
  if (name == "fp8" && block != found->end() && block->is_array() && block->size() == 2) {
    auto rows = integer_in((*block)[0], 1, 1 << 20), columns = integer_in((*block)[1], 1, 1 << 20);
    if (!rows || !columns)
      config.fail("weight_block_size", "two numbers such as [128, 128]", shown(*block));
    model.scale_block = {*rows, *columns};
    return;
  }
  model.notes.push_back(
      fmt::format("weights before quantisation ({}): what it makes of them is not known here",
                  reshard::quoted(name)));
}

// Modules that stay as they were before quantisation: "lm_head", "model.layers.3.self_attn.o_proj",
// "model.layers.61" or "o_proj", under either of the names that the list has.
void leave_out(const ConfigFields& config, Model& model) {
  const ConfigJson* quantisation = config.find_anywhere("quantization_config");
  if (quantisation == nullptr || !model.scale_block) return;
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    auto list = quantisation->find(key);
    if (list == quantisation->end() || list->is_null()) continue;
    if (!list->is_array()) config.fail(key, "a list of names of modules", shown(*list));
    for (const ConfigJson& entry : *list) {
      if (!entry.is_string()) config.fail(key, "a list of names of modules", shown(entry));
      const std::string name = entry.get<std::string>();
      if (name.starts_with("re:") || name.find('*') != std::string::npos)
        config.fail(key, "names of modules, as patterns are not read", reshard::quoted(name));
      if (name.find(".experts.") != std::string::npos)
        config.fail(key, "all experts of a layer or none", reshard::quoted(name));
      auto change = [&](WeightGroup& group) {
        for (Weight& weight : group.weights)
          if (("." + weight.name).find("." + name + ".") != std::string::npos)
            weight.is_quantised = false;
      };
      for (WeightGroup& layer : model.layers) change(layer);
    }
  }
}

}  // namespace

Model parse_config(std::string_view text, const std::string& file) {
  const ConfigJson whole = read_config(text, file);
  const ConfigFields config(whole, file);
  Model model;
  model.file = file;
  if (!config.part().empty())
    model.notes.push_back(
        fmt::format("only the weights of {}, not those of other inputs", config.part()));
  model.family = config.word("model_type", "");
  read_quantisation(config, model);
  add_weights(config, model);
  leave_out(config, model);
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
