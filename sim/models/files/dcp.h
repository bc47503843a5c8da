// SPDX-License-Identifier: BSD-3-Clause
// The metadata of a distributed checkpoint of PyTorch (torch.distributed.checkpoint): which boxes
// of which tensors are in it, and which rank saved each, as the names of the files say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

struct DcpChunk {
  Box box;  // not empty
  Rank rank;
  std::string file;  // "__3_0.distcp": saved by rank 3
};
struct DcpTensor {
  ForeignTensor tensor;
  std::vector<DcpChunk> chunks;  // which have every element once
};
struct DcpMetadata {
  std::vector<DcpTensor> tensors;
  std::vector<std::string> left_out;  // the names of what is no tensor
  // Of tensors that Megatron-Core saved in another shape than the model's.
  std::int64_t reshaped = 0;
};

// Of `.metadata`, of which nothing is run. `place` names it in messages. Throws InputError for what
// is not the metadata of such a checkpoint, dtypes that reshard does not know, chunks that are not
// those of the tensor, and files whose names give no rank.
DcpMetadata parse_dcp(std::string_view bytes, const std::string& place);
// Of a folder with .metadata, or of that file.
DcpMetadata read_dcp(const std::string& path);
// `side` is "from" or "to". Buffers are the chunks.
ForeignLayouts layouts_of(const DcpMetadata& metadata, std::string_view side);

}  // namespace reshard::sim
