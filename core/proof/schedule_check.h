// SPDX-License-Identifier: BSD-3-Clause
// Whether what ranks do means what the plan says: all ranks' schedules run against each other on
// the symbolic memory of the proof, messages matched box by box.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/proof/proof.h"
#include "core/schedule/rank_schedule.h"

namespace reshard {

// The plan must be proved; `schedules` are those of all its slots.
std::optional<Refutation> check_schedules(const Plan& plan,
                                          const std::vector<RankSchedule>& schedules);

// rank_schedules. Debug builds check them; a CheckFailure says what is wrong.
std::vector<RankSchedule> checked_schedules(const Plan& plan, std::span<const Slot> slots,
                                            const SchedulePolicy& policy);

}  // namespace reshard
