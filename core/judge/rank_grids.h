// SPDX-License-Identifier: BSD-3-Clause
// Recognises ranks that were mistaken for others because two axes of their mesh were exchanged,
// such as expert parallelism and the tensor parallelism of experts.
#pragma once

#include <string>
#include <vector>

#include "core/judge/judge.h"

namespace reshard {

class RankGrids {
 public:
  // Examines all faults. Both sides must outlive this.
  RankGrids(const std::vector<const CopyFault*>& faults, const Stored& source,
            const Stored& destination);

  // "axes ep and etp of the ranks of the destination are exchanged" if that explains these faults,
  // otherwise empty. If `sure`, considers only exchanges of which every rank that they would move
  // is at fault somewhere; otherwise also likely ones, which explain every wrong index and tensor
  // in buffers of the mesh, and at least three such buffers.
  std::string exchanged(const std::vector<CopyFault>& faults, bool sure) const;

 private:
  // The rank that a copy names, the ranks that would have been right, and their mesh.
  struct Taken {
    Rank rank;
    std::vector<Rank> right;
    const Mesh* mesh = nullptr;
    StoredBufferId buffer{-1};  // of the destination
  };
  // An exchange of two axes of a mesh.
  struct Exchange {
    const Stored* side;
    MeshRef mesh;
    int a, b;
    bool is_sure = false;
    bool explains(const Taken& taken) const;
  };

  const Stored& side_of(bool is_source) const { return is_source ? source_ : destination_; }
  std::vector<Taken> taken_in(const CopyFault& fault, bool is_source) const;
  Taken taken_with(const Stored& side, Rank rank, ModelTensorId tensor, const DimVector& index,
                   const std::string_view* buffer, std::int64_t offset) const;
  void look_for(const std::vector<const CopyFault*>& faults, bool is_source);

  const Stored &source_, &destination_;
  std::vector<Rank> source_ranks_, destination_ranks_;
  std::vector<Exchange> found_;
};

}  // namespace reshard
