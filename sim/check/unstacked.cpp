// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/unstacked.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/stored/view.h"

namespace reshard::sim {
namespace {

std::string expert_name(std::string_view name, std::int64_t expert) {
  constexpr std::string_view kExperts = "experts.";
  std::size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return std::string(name);
  at += kExperts.size();
  return fmt::format("{}{}.{}", name.substr(0, at), expert, name.substr(at));
}

class Unstacking {
 public:
  Unstacking(const ModelTensors& tensors, const std::function<bool(std::string_view)>& has) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const ModelTensor& tensor = tensors[id_of<ModelTensorId>(t)];
      bool is_split =
          tensor.shape.size() > 1 && !has(tensor.name) && has(expert_name(tensor.name, 0));
      any_ = any_ || is_split;
      add(tensors, tensor, is_split);
    }
  }

  bool any() const { return any_; }
  std::unique_ptr<ModelTensors> take() { return std::move(tensors_); }

  std::unique_ptr<Stored> side(const Stored& of, const ModelTensors& tensors) const {
    auto out = std::make_unique<Stored>(tensors);
    for (const StoredBuffer& buffer : of.buffers()) {
      StoredBuffer own = buffer;
      own.parts.clear();
      own.reach.clear();
      for (const StoredPart& part : buffer.parts) add_part(part, own.parts);
      out->add(std::move(own));
    }
    return out;
  }

 private:
  struct New {
    ModelTensorId first;
    bool is_split;
  };

  void add(const ModelTensors& tensors, const ModelTensor& tensor, bool is_split) {
    const std::int64_t count = is_split ? tensor.shape[0] : 1;
    const ModelTensor& same = tensors[tensor.same_as];
    new_.push_back({id_of<ModelTensorId>(tensors_->size()), is_split});
    for (std::int64_t i = 0; i < count; ++i) {
      std::string name = is_split ? expert_name(tensor.name, i) : tensor.name;
      Shape shape = is_split ? without_first(tensor.shape) : tensor.shape;
      if (same.name != tensor.name)
        tensors_->add_alias(name, is_split ? expert_name(same.name, i) : same.name);
      else if (tensor.scales && new_[to_index(tensor.scales->tensor)].is_split == is_split)
        tensors_->add_scales(
            name,
            {id_of<ModelTensorId>(to_index(new_[to_index(tensor.scales->tensor)].first) +
                                  to_index(is_split ? i : 0)),
             is_split ? without_first(tensor.scales->block) : tensor.scales->block},
            tensor.dtype);
      else
        tensors_->add(name, shape, tensor.dtype);
    }
  }

  void add_part(const StoredPart& part, std::vector<StoredPart>& out) const {
    const New& to = new_[to_index(part.tensor)];
    if (!to.is_split) {
      out.push_back(part);
      out.back().tensor = to.first;
      return;
    }
    for (std::int64_t i = part.box.lo[0]; i < part.box.hi[0]; ++i)
      out.push_back({id_of<ModelTensorId>(to_index(to.first) + to_index(i)),
                     box_of(without_first(part.box.lo), without_first(part.box.hi)),
                     part.offset + (i - part.box.lo[0]) * part.strides[0],
                     without_first(part.strides)});
  }

  static Box box_of(const DimVector& lo, const DimVector& hi) {
    Box out;
    out.lo = lo;
    out.hi = hi;
    return out;
  }

  std::unique_ptr<ModelTensors> tensors_ = std::make_unique<ModelTensors>();
  std::vector<New> new_;  // by tensor
  bool any_ = false;
};

}  // namespace

ModelLayouts unstacked(ModelLayouts layouts, const std::function<bool(std::string_view)>& has) {
  Unstacking unstacking(*layouts.tensors, has);
  if (!unstacking.any()) return layouts;
  ModelLayouts out{unstacking.take(), nullptr, nullptr, nullptr};
  out.source = unstacking.side(*layouts.source, *out.tensors);
  out.destination = unstacking.side(*layouts.destination, *out.tensors);
  return out;
}

}  // namespace reshard::sim
