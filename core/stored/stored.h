// SPDX-License-Identifier: BSD-3-Clause
// How a model lies in the buffers of its ranks.
//
// A *part* is a box of a tensor that is a strided view of a buffer. Elements of a buffer without a
// part are padding and can have any value. Tensors can be other names of one tensor (tied
// weights); an element is (tensor, index), the tensor being the one that has no other name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/layout/box.h"
#include "core/layout/mesh.h"
#include "core/stored/view.h"

namespace reshard {

// Indices of ModelTensors and of Stored::buffers().
enum class ModelTensorId : std::int32_t {};
enum class StoredBufferId : std::int32_t {};

// A tensor of scales has one element for each block of another tensor; the last block of a dim can
// be smaller.
struct ScalesOf {
  ModelTensorId tensor;
  Shape block;  // by dim
};

struct ModelTensor {
  std::string name;
  Shape shape;
  DType dtype;            // in which its elements are sent
  ModelTensorId same_as;  // itself, unless this is another name of that tensor
  std::optional<ScalesOf> scales = {};
};

// The tensors of a model, which both sides of a transfer share.
class ModelTensors {
 public:
  // Throws InputError if the name is taken, the shape has too many bytes, or the tensor of which
  // this is another name has another shape or dtype.
  ModelTensorId add(std::string name, Shape shape, DType dtype);
  ModelTensorId add_alias(std::string name, std::string_view of);
  // Throws InputError unless the block has an extent of at least 1 for each dim of the tensor.
  ModelTensorId add_scales(std::string name, ScalesOf scales, DType dtype);

  std::size_t size() const { return list_.size(); }
  const ModelTensor& operator[](ModelTensorId id) const { return list_[id]; }
  const ModelTensor* find(std::string_view name) const;
  // Throws InputError "FIELD: expected a tensor ...".
  ModelTensorId at(std::string_view name, std::string_view field) const;

 private:
  ModelTensorId put(ModelTensor tensor);
  IndexVector<ModelTensorId, ModelTensor> list_;
  std::unordered_map<std::string, ModelTensorId> by_name_;
};

struct StoredPart {
  ModelTensorId tensor;
  Box box;                  // not empty
  std::int64_t offset = 0;  // of the first element, in elements of the buffer
  DimVector strides;        // by dim of the tensor
  StridedView view() const { return {offset, box.extents(), strides}; }
};

struct StoredBuffer {
  Rank rank;
  std::string_view name;  // once the buffer is added, in memory of the Stored
  Shape shape;
  DType dtype;
  std::vector<StoredPart> parts = {};  // ascending by offset
  // Whether the buffer has another dtype than its tensors: the rank converts elements before they
  // are sent from it, or after they have arrived.
  bool converts = false;
  MeshRef mesh = nullptr;  // the mesh that the buffer was made for, if any
  // By part, the greatest end of this part and those before it; empty if there is only one part.
  std::vector<std::int64_t> reach = {};

  std::int64_t bytes() const { return element_count(shape) * size_bytes(dtype); }
  // The first part that can have elements from there on.
  std::size_t first_part_at(std::int64_t offset) const;
};

// A model on its ranks: one side of a transfer.
class Stored {
 public:
  explicit Stored(const ModelTensors& tensors) : tensors_(&tensors) {}
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;

  // Sorts the parts. Throws InputError if the rank already has the buffer, a part is outside its
  // tensor or the buffer, an element of a part has two indices, parts overlap in the buffer, or
  // there are too many buffers or parts. The dtype of the buffer is that of its parts' tensors,
  // unless it converts; then it is another one.
  StoredBufferId add(StoredBuffer buffer);

  const ModelTensors& tensors() const { return *tensors_; }
  const IndexVector<StoredBufferId, StoredBuffer>& buffers() const { return buffers_; }
  std::optional<StoredBufferId> find(Rank rank, std::string_view name) const;
  // The buffer of this name on the lowest rank that has one.
  std::optional<StoredBufferId> find_any(std::string_view name) const;
  // All parts of a tensor on a rank, under any of the tensor's names. Valid until the next buffer
  // is added.
  struct PartId {
    StoredBufferId buffer;
    std::int32_t part;
  };
  std::span<const PartId> parts_of(Rank rank, ModelTensorId tensor) const;
  const StoredPart& operator[](PartId id) const {
    return buffers_[id.buffer].parts[to_index(id.part)];
  }
  // Ascending.
  std::vector<Rank> ranks() const;

 private:
  void check(const StoredBuffer& buffer) const;
  void check_part(const StoredBuffer& buffer, const StoredPart& part) const;
  void check_conversion(const StoredBuffer& buffer) const;
  void check_disjoint(const StoredBuffer& buffer) const;

  static std::uint64_t key_of(Rank rank, ModelTensorId tensor) {
    return to_index(tensor) << 32 | to_index(rank);
  }

  void sort_parts() const;

  const ModelTensors* tensors_;
  IndexVector<StoredBufferId, StoredBuffer> buffers_;
  std::size_t size_ = 0;  // buffers and parts
  // The buffers of one name, ascending by rank.
  using OfName = std::vector<std::pair<Rank, StoredBufferId>>;
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, OfName, NameHash, std::equal_to<>> by_name_;
  // The parts by tensor and rank, sorted when they are first needed.
  mutable std::vector<std::uint64_t> keys_;
  mutable std::vector<PartId> parts_;
  mutable bool sorted_ = true;
};

// "q_proj[0:4,:]"; ":" is a whole dim.
std::string element_text(const ModelTensor& tensor, const Box& box);

}  // namespace reshard
