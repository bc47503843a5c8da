// SPDX-License-Identifier: BSD-3-Clause
// Requests for which PyTorch is known to be wrong or wasteful. Plans made here are right in all of
// these cases; `plan --explain` lists them so that users know what to expect of PyTorch itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard {

struct TorchDefect {
  int issue;         // pytorch/pytorch#issue
  std::string what;  // one sentence without a full stop
  friend bool operator==(const TorchDefect&, const TorchDefect&) = default;
};

// Ascending by issue. Empty across meshes: PyTorch refuses such requests.
std::vector<TorchDefect> torch_known_defects(const Request& request, std::int32_t devices_per_host);

}  // namespace reshard
