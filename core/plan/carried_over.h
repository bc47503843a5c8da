// SPDX-License-Identifier: BSD-3-Clause
// A plan for the same tensors on other ranks.
#pragma once

#include <span>

#include "core/plan/plan.h"

namespace reshard {

// The plan of a job as a plan of `requests`, a job that is alike (core/demand/likeness.h): the same
// for each slot. CheckFailure if the two have other numbers of tensors or ranks.
Plan carried_over(const Plan& plan, std::span<const Request> requests);

}  // namespace reshard
