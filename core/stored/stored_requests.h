// SPDX-License-Identifier: BSD-3-Clause
// Turns a transfer between the buffers of a model's ranks into requests that planners accept, one
// per tensor.
//
// A rank's shard of such a request consists of all parts of the tensor that the rank has, in any of
// its buffers: boxes of the tensor, joined where they are adjacent, one after another. The shard
// itself is not in the rank's memory: the parts define where its elements are. A rank that needs
// elements of a tensor several times (tied weights in two buffers) gets them by several requests.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/request.h"
#include "core/stored/stored.h"

namespace reshard {

// A box of a shard, in local indices, and the view of the buffer that holds its elements.
struct StoredPlace {
  Box local;
  StoredBufferId buffer;
  StridedView view;
};

class StoredRequests {
 public:
  // Makes one request for each tensor that a destination has, in the order of the tensors; its name
  // is the tensor's. Throws InputError, naming the tensor, if the source lacks elements of it, and
  // if no rank has a destination. Both sides must have the same tensors, and must outlive this.
  StoredRequests(const Stored& source, const Stored& destination);

  const Stored& source() const { return source_; }
  const Stored& destination() const { return destination_; }
  const std::vector<Request>& requests() const { return requests_; }
  // The rank's shard of a request without its padding, in disjoint boxes; empty if the rank has no
  // shard.
  std::vector<StoredPlace> source_places(TensorId request, Rank rank) const;
  std::vector<StoredPlace> destination_places(TensorId request, Rank rank) const;
  // The tensor that a request moves, under its first name.
  ModelTensorId tensor_of(TensorId request) const { return tensor_of_[to_index(request)]; }
  // The request that writes a part of a buffer of the destination.
  TensorId written_by(Stored::PartId part) const {
    return request_of_[part.buffer][to_index(part.part)];
  }

 private:
  const Stored &source_, &destination_;
  std::vector<Request> requests_;
  std::vector<ModelTensorId> tensor_of_;  // by request
  IndexVector<StoredBufferId, std::vector<TensorId>> request_of_;
};

}  // namespace reshard
