// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace reshard::sim {

// What to record in addition to the time.
struct Recording {
  bool spans = false;
  bool path = false;   // RecordedRun::path
  bool flows = false;  // Timeline::flows
  bool work = false;   // Timeline::work
  bool covers(const Recording& other) const {
    return spans >= other.spans && path >= other.path && flows >= other.flows && work >= other.work;
  }
  Recording with(const Recording& other) const {
    return {spans || other.spans, path || other.path, flows || other.flows, work || other.work};
  }
};

}  // namespace reshard::sim
