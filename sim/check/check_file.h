// SPDX-License-Identifier: BSD-3-Clause
// Reads the copies of a transfer, whoever planned them, with the layouts of both sides, and judges
// them as they are read (docs/check.md).
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
  bool has_more = false;              // faults than are kept
  std::unique_ptr<Judge> judge = {};  // that has seen all copies

  bool proved() const { return faults.empty(); }
};

// `file` names the stream in messages; `progress` is called with line numbers now and then. Throws
// InputError.
CheckedCopies check_copies(std::istream& in, const std::string& file,
                           const std::function<void(std::int64_t)>& progress = {});

// The same file as what is to be moved: requests, and where their shards lie.
struct ModelLayouts {
  std::unique_ptr<ModelTensors> tensors;
  std::unique_ptr<Stored> source, destination;
  std::unique_ptr<StoredRequests> requests;
};
// The copies of a file that need not have layouts of its own, between these.
CheckedCopies check_copies(std::istream& in, const std::string& file, ModelLayouts layouts);
// Skips copies in the file. Throws InputError, also for sides between which nothing can be moved.
std::shared_ptr<const ModelLayouts> read_layouts(LineReader& lines, const std::string& file);
// The same without requests: either side can be left out.
ModelLayouts read_sides(LineReader& lines, const std::string& file);
// From a file, or for "-" from standard input.
ModelLayouts read_sides(const std::string& path);
// Whether a file that begins with `start` is one of these.
bool is_check_file(std::string_view start);

}  // namespace reshard::sim
