// SPDX-License-Identifier: BSD-3-Clause
// What this machine has that reshard could use, found at run time without headers or link-time
// dependencies on any of it.
#pragma once

#include <string>
#include <vector>

namespace reshard::tools {

struct Fact {
  std::string name;  // "CUDA driver"
  bool found;
  std::string value;  // what was found, or what is missing and how to get it
};

// Compiler and libraries of this build, then CUDA and NCCL as found now. Backends speak for
// themselves (backend_choice.h).
std::vector<Fact> machine_facts();

}  // namespace reshard::tools
