// SPDX-License-Identifier: BSD-3-Clause
// Reads the copies of a transfer, made by any planner, together with the layouts of both sides, and
// judges them as they are read (docs/check.md).
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/judge/judge.h"
#include "core/stored/stored.h"
#include "core/stored/stored_requests.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

struct CheckedCopies {
  std::string file;
  std::unique_ptr<ModelTensors> tensors;
  std::unique_ptr<Stored> source, destination;
  std::int64_t copies = 0, bytes = 0;
  std::vector<CopyFault> faults;
  bool has_more = false;              // whether there were more faults than are kept
  std::unique_ptr<Judge> judge = {};  // has judged all copies

  bool proved() const { return faults.empty(); }
};

// `file` names the stream in messages; `progress` is called with a line number from time to time.
// Throws InputError.
CheckedCopies check_copies(std::istream& in, const std::string& file,
                           const std::function<void(std::int64_t)>& progress = {});

// A file of layouts as something to move: requests, and where their shards are in the buffers.
struct ModelLayouts {
  std::unique_ptr<ModelTensors> tensors;
  std::unique_ptr<Stored> source, destination;
  std::unique_ptr<StoredRequests> requests;
};
// Judges copies between these layouts; the file need not have layouts of its own.
CheckedCopies check_copies(std::istream& in, const std::string& file, ModelLayouts layouts);
// Ignores copies in the file. Throws InputError, also if the sides are such that nothing can be
// moved.
std::shared_ptr<const ModelLayouts> read_layouts(LineReader& lines, const std::string& file);
// The same without requests; either side may be missing.
ModelLayouts read_sides(LineReader& lines, const std::string& file);
// Reads a file, or standard input for "-".
ModelLayouts read_sides(const std::string& path);
// Whether `start` is the beginning of such a file.
bool is_check_file(std::string_view start);

}  // namespace reshard::sim
