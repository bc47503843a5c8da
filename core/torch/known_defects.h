// SPDX-License-Identifier: BSD-3-Clause
// Where PyTorch is known to be wrong or wasteful, and which requests meet it there. Plans made here
// are right in all of these cases; `plan --explain` names them so that users know what to expect of
// PyTorch itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard {

struct TorchDefect {
  int issue;         // pytorch/pytorch#issue
  std::string what;  // one sentence without its full stop
  friend bool operator==(const TorchDefect&, const TorchDefect&) = default;
};

// In ascending order of issues; across meshes none, as PyTorch refuses such a request.
std::vector<TorchDefect> torch_known_defects(const Request& request, std::int32_t devices_per_host);

}  // namespace reshard
