// SPDX-License-Identifier: BSD-3-Clause
// Reads the metadata of a distributed checkpoint of PyTorch (torch.distributed.checkpoint): which
// boxes of which tensors it contains, and which rank saved each box, taken from the names of the
// files.
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
  std::vector<DcpChunk> chunks;  // together they have every element once
};
struct DcpMetadata {
  std::vector<DcpTensor> tensors;
  std::vector<std::string> left_out;  // names of entries that are not tensors
  // How many tensors Megatron-Core saved in another shape than the model's.
  std::int64_t reshaped = 0;
};

// Reads the content of `.metadata` without running any of it. `place` names the file in messages.
// Throws InputError if it is not the metadata of such a checkpoint, for dtypes that reshard does
// not have, chunks that do not make up their tensor, and file names without a rank.
DcpMetadata parse_dcp(std::string_view bytes, const std::string& place);
// `path` is the folder with .metadata, or that file.
DcpMetadata read_dcp(const std::string& path);
// Makes each chunk a buffer. `side` is "from" or "to".
ForeignLayouts layouts_of(const DcpMetadata& metadata, std::string_view side);

}  // namespace reshard::sim
