// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/stored_dtypes.h"

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard::sim {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::BF16 || dtype == DType::F16 || dtype == DType::F32 || dtype == DType::F64;
}

class StoredDtypes {
 public:
  StoredDtypes(Model& model, const std::string& place) : model_(model), place_(place) {}

  void read(const std::vector<FileTensor>& tensors) {
    const FileNames names(model_);
    std::unordered_set<std::string> all;
    for (const FileTensor& tensor : tensors) all.insert(tensor.name);
    for (const FileTensor& tensor : tensors) {
      if (tensor.dtype_name.empty()) continue;
      if (names.find_scaled(tensor.name)) {
        if (tensor.dtype != DType::F32) fail(tensor, "f32 for scales");
      } else if (auto known = names.find(tensor.name)) {
        check(tensor, *known->parameter->weight, all);
        for (const Weight* weight : known->parameter->weights) remember(tensor, weight->name);
      }
    }
  }

  void give() {
    give(model_.embedding);
    for (WeightGroup& layer : model_.layers) give(layer);
    give(model_.head);
    for (const auto& [dtypes, found] : changed_)
      model_.notes.push_back(fmt::format(
          "{} in {}, as the checkpoint has {}, such as {}, not in {}, as {} says; --dtype {} moves "
          "all so",
          counted(found.count, "tensor"), text(dtypes.second), found.count == 1 ? "it" : "them",
          found.first, text(dtypes.first), model_.file, text(dtypes.first)));
    if (plain_.count > 0)
      model_.notes.push_back(fmt::format("{} not quantised in the checkpoint, such as {}",
                                         counted(plain_.count, "tensor"), plain_.first));
  }

 private:
  struct Found {
    std::int64_t count = 0;
    std::string first;
    void add(const std::string& name) {
      if (count++ == 0) first = name;
    }
  };

  void check(const FileTensor& tensor, const Weight& weight,
             const std::unordered_set<std::string>& all) const {
    if (model_.scale_block && has_scales(weight) && tensor.dtype == DType::F8E4M3) {
      if (!all.contains(scale_name(tensor.name)))
        throw InputError(fmt::format("{}: {}: expected its scales {} next to it, found none",
                                     place_, tensor.name, scale_name(tensor.name)));
    } else if (tensor.dtype != weight.dtype && (!tensor.dtype || !is_float(*tensor.dtype))) {
      fail(tensor, fmt::format("{}, as {} says, or another floating-point dtype of 16 bits or more",
                               text(weight.dtype), model_.file));
    }
  }

  // A weight can be many tensors, and a tensor several weights.
  void remember(const FileTensor& tensor, const std::string& weight) {
    auto [at, is_new] = dtypes_.try_emplace(weight, *tensor.dtype);
    if (!is_new && at->second != *tensor.dtype)
      fail(tensor, fmt::format("{}, as other tensors of {} have it", text(at->second), weight));
  }

  void give(WeightGroup& group) {
    for (Weight& weight : group.weights) {
      auto found = dtypes_.find(weight.name);
      if (found == dtypes_.end()) continue;
      const bool may_scale = model_.scale_block && has_scales(weight);
      if (may_scale && found->second == DType::F8E4M3) continue;
      if (may_scale) {
        weight.is_quantised = false;
        plain_.add(weight.name);
      }
      if (weight.dtype != found->second && !weight.is_added)
        changed_[{weight.dtype, found->second}].add(weight.name);
      weight.dtype = found->second;
    }
  }

  [[noreturn]] void fail(const FileTensor& tensor, std::string_view expected) const {
    throw InputError(fmt::format("{}: {}: expected {}, found {}", place_, tensor.name, expected,
                                 tensor.dtype ? text(*tensor.dtype) : tensor.dtype_name));
  }

  Model& model_;
  const std::string& place_;
  std::unordered_map<std::string, DType> dtypes_;  // by weight
  std::map<std::pair<DType, DType>, Found> changed_;
  Found plain_;
};

}  // namespace

void take_stored_dtypes(const std::vector<FileTensor>& tensors, Model& model,
                        const std::string& place) {
  StoredDtypes stored(model, place);
  stored.read(tensors);
  stored.give();
}

}  // namespace reshard::sim
