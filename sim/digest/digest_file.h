// SPDX-License-Identifier: BSD-3-Clause
// Digests as a file (docs/digest.md). Parts have names, so that the files of single ranks can be
// joined without the layouts that they belong to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/digest/digests.h"

namespace reshard::sim {

struct DigestTensor {
  std::string name;
  Shape shape;
  DType dtype;
  std::int64_t rows;  // of a block
  friend bool operator==(const DigestTensor&, const DigestTensor&) = default;
};

// A box of a tensor in a buffer, with digests that are the same on all of `ranks`.
struct DigestPart {
  DigestSide side;
  std::string buffer;
  std::int32_t tensor;  // index of DigestFile::tensors
  Box box;
  std::int32_t time;  // 0: the first part of the buffer with this tensor and box
  BlockDigestsRef digests;
  std::vector<Rank> ranks;  // ascending
};

struct DigestFile {
  std::string place;  // the file's name in messages
  std::vector<DigestTensor> tensors;
  std::vector<DigestSide> sides;  // the sides that the file covers, ascending
  std::vector<DigestPart> parts;
};

// `place` names the file in messages. Throws InputError.
DigestFile read_digest_file(std::string_view text, const std::string& place);
std::string write_digest_file(const DigestFile& file);

DigestFile file_of(const Digests& digests, const ModelLayouts& layouts);
// Joins the parts of all files. Throws InputError, naming a file, if tensors or rows differ, or if
// a part of a rank occurs twice.
DigestFile gathered(const std::vector<DigestFile>& files);
// Throws InputError if the tensors, rows or parts of the file are not those of the layouts.
Digests digests_in(const DigestFile& file, const ModelLayouts& layouts, const std::string& place);

}  // namespace reshard::sim
