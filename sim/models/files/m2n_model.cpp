// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/m2n_model.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/inputs/json_reader.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {
namespace {

constexpr JsonLimits kM2nLimits{8, std::int64_t{1} << 24, std::size_t{1} << 20};
// The benchmark does not transfer tensors of more dims.
constexpr int kMostDims = 3;
constexpr std::string_view kExperts = ".experts.";

constexpr std::pair<std::string_view, DType> kDtypes[] = {
    {"F32", DType::F32},       {"F16", DType::F16}, {"BF16", DType::BF16},
    {"I64", DType::I64},       {"I32", DType::I32}, {"I16", DType::I16},
    {"I8", DType::I8},         {"U8", DType::U8},   {"F8_E4M3", DType::F8E4M3},
    {"F8_E5M2", DType::F8E5M2}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "X.experts.Y" for "X.experts.<number>.Y"; nothing for other names. If there are several such
// places, the last counts.
std::optional<std::string> joined_name(std::string_view name) {
  for (std::size_t at = name.rfind(kExperts); at != std::string_view::npos && at > 0;
       at = name.rfind(kExperts, at - 1)) {
    std::size_t begin = at + kExperts.size(), end = begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > begin && end + 1 < name.size() && name[end] == '.')
      return fmt::format("{}{}", name.substr(0, begin), name.substr(end + 1));
  }
  return std::nullopt;
}

class M2nReader {
 public:
  explicit M2nReader(const std::string& place) : place_(place) {}

  M2nModel read(std::string_view text) {
    auto json = read_json<TraceJson>(text, place_, kM2nLimits);
    if (!json.is_object())
      throw InputError(fmt::format(
          "{}: expected an object such as {{\"lm_head.weight\": {{\"shape\": [151936, 5120], "
          "\"dtype\": \"BF16\"}}}}, found {}",
          place_, shown(json)));
    for (const auto& [name, value] : json.items()) add(read_tensor(name, value));
    for (auto& [name, group] : groups_) join(name, group);
    for (auto& [name, tensor] : tensors_) {
      count_layer(name);
      if (tensor.shape.size() > kMostDims) {
        out_.left_out.push_back(name);
        continue;
      }
      check_tensor(tensor, place_);
      out_.tensors.push_back(std::move(tensor));
    }
    if (out_.tensors.empty())
      throw InputError(place_ + ": expected at least one tensor of at most 3 dims, found none");
    return std::move(out_);
  }

 private:
  struct Group {
    ForeignTensor first;
    std::int64_t count = 0;
  };

  std::string where(std::string_view name) const {
    return fmt::format("{}: tensor {}", place_, reshard::quoted(name, 200));
  }

  // Fields with other names are ignored, as the benchmark does.
  ForeignTensor read_tensor(const std::string& name, const TraceJson& json) {
    const std::string place = where(name);
    if (!json.is_object())
      throw InputError(
          fmt::format("{}: expected an object with a shape, found {}", place, shown(json)));
    TraceFields fields(json, place);
    ForeignTensor out{name, {}, DType::BF16};
    constexpr std::string_view kWhat = "a list of at most 7 integers from 0";
    const TraceJson& shape = fields.required("shape", kWhat);
    // One dim fewer than layouts can have, because experts add one.
    if (!shape.is_array() || shape.size() >= kMaxDims) fields.fail("shape", kWhat, shape);
    for (const TraceJson& extent : shape) {
      auto number = integer_in(extent, 0, kMaxBytes);
      if (!number) fields.fail("shape", kWhat, extent);
      out.shape.push_back(*number);
    }
    std::string dtype =
        fields.optional_string("dtype", "a dtype such as \"BF16\"").value_or("BF16");
    auto row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                            [&](const auto& each) { return each.first == dtype; });
    if (row != std::end(kDtypes))
      out.dtype = row->second;
    else
      out_.as_bf16.push_back(name);
    return out;
  }

  void add(ForeignTensor tensor) {
    if (auto name = joined_name(tensor.name)) {
      auto [found, is_new] = groups_.try_emplace(*name, Group{tensor});
      Group& group = found->second;
      if (group.first.shape != tensor.shape || group.first.dtype != tensor.dtype)
        throw InputError(fmt::format("{}: expected the shape and dtype of {}, found others",
                                     where(tensor.name), reshard::quoted(group.first.name, 200)));
      ++group.count;
    } else {
      tensors_.emplace(tensor.name, tensor);
    }
  }

  void join(const std::string& name, const Group& group) {
    ForeignTensor out{name, {group.count}, group.first.dtype};
    for (std::int64_t extent : group.first.shape) out.shape.push_back(extent);
    if (!tensors_.emplace(name, std::move(out)).second)
      throw InputError(
          fmt::format("{}: expected another name than that of the experts together, "
                      "found both",
                      where(name)));
  }

  void count_layer(const std::string& name) {
    try {
      if (auto layer = layer_of(name)) out_.layers = std::max(out_.layers, *layer + 1);
    } catch (const InputError& error) {
      throw error.in(place_);
    }
  }

  const std::string& place_;
  std::map<std::string, ForeignTensor> tensors_;
  std::map<std::string, Group> groups_;  // experts, by their common name
  M2nModel out_;
};

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

}  // namespace

std::optional<std::int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  for (std::size_t at = name.find(kLayers); at != std::string_view::npos;
       at = name.find(kLayers, at + 1)) {
    std::size_t end = at + kLayers.size();
    std::int64_t number = 0;
    for (; end < name.size() && is_digit(name[end]); ++end) {
      number = number * 10 + (name[end] - '0');
      if (number > INT32_MAX)
        throw InputError(fmt::format("tensor {}: expected numbers of layers below 2^31, found more",
                                     reshard::quoted(name, 200)));
    }
    if (end > at + kLayers.size()) return number;
  }
  return std::nullopt;
}

bool is_expert(std::string_view name) { return has(name, kExperts); }

std::optional<int> cut_dim(std::string_view name) {
  if (!is_expert(name) &&
      (name.ends_with("mlp.gate.weight") || has(name, "e_score_correction_bias")))
    return std::nullopt;
  if (ends_with_any(name, {"q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight",
                           "up_proj.weight", "q_a_proj.weight", "q_b_proj.weight",
                           "kv_a_proj_with_mqa.weight", "kv_b_proj.weight"}))
    return 0;
  if (ends_with_any(name, {"o_proj.weight", "down_proj.weight"})) return 1;
  if (!is_expert(name) && (has(name, "embed_tokens.weight") || has(name, "lm_head.weight")))
    return 0;
  return std::nullopt;
}

M2nModel parse_m2n_model(std::string_view text, const std::string& place) {
  return M2nReader(place).read(text);
}

}  // namespace reshard::sim
