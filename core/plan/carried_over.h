// SPDX-License-Identifier: BSD-3-Clause
// A plan for the same tensors on other ranks.
#pragma once

#include <span>

#include "core/plan/plan.h"

namespace reshard {

// The plan of a job as a plan of `requests`, a job that is alike (core/demand/likeness.h): every
// slot does the same. CheckFailure if the two jobs differ in their numbers of tensors or ranks.
Plan carried_over(const Plan& plan, std::span<const Request> requests);

}  // namespace reshard
