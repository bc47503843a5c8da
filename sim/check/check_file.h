// SPDX-License-Identifier: BSD-3-Clause
// Reads the copies of a transfer, by whoever planned them, with the layouts of both sides, and
// judges them as they are read (docs/check.md).
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "core/judge/judge.h"
#include "core/stored/stored.h"

namespace reshard::sim {

struct CheckedCopies {
  std::string file;
  std::unique_ptr<ModelTensors> tensors;
  std::unique_ptr<Stored> source, destination;
  std::int64_t copies = 0, bytes = 0;
  std::vector<Fault> faults;
  bool has_more = false;  // faults than are kept
};

// `file` names the stream in messages; `progress` is called with line numbers now and then. Throws
// InputError.
CheckedCopies check_copies(std::istream& in, const std::string& file,
                           const std::function<void(std::int64_t)>& progress = {});

}  // namespace reshard::sim
