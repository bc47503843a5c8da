// SPDX-License-Identifier: BSD-3-Clause
#include "core/plan/carried_over.h"

#include <vector>

#include "core/base/errors.h"

namespace reshard {

Plan carried_over(const Plan& plan, std::span<const Request> requests) {
  Plan out = plan;
  out.tensors = std::vector<Request>(requests.begin(), requests.end());
  out.ranks = ranks_of(requests);
  RESHARD_CHECK(out.tensors.size() == plan.tensors.size() && out.ranks.size() == plan.ranks.size(),
                "a job that is not alike");
  return out;
}

}  // namespace reshard
