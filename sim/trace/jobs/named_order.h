// SPDX-License-Identifier: BSD-3-Clause
// The order of a job's requests as texts write it: each may have an id, and name the ids of those
// that it comes after, in any order.
#pragma once

#include <string>
#include <vector>

#include "core/layout/stages.h"

namespace reshard::sim {

class NamedOrder {
 public:
  // The next request's; either may be empty.
  void add(std::string id, std::vector<std::string> after);

  // By request. Throws InputError "requests[2].after: ..." for an id that two requests have or that
  // none has, and for a cycle.
  TensorOrder resolved() const;

 private:
  std::vector<std::string> ids_;
  std::vector<std::vector<std::string>> after_;
};

}  // namespace reshard::sim
