# SPDX-License-Identifier: BSD-3-Clause
reshard_test(test_job SOURCES
  tests/backends/job/test_plan_agreement.cpp
  tests/backends/job/test_launch.cpp
  tests/backends/job/test_meeting.cpp
  tests/backends/job/test_place.cpp
  LINKS reshard_job reshard_planners Threads::Threads)
reshard_test(test_host SOURCES
  tests/backends/host/test_message.cpp
  tests/backends/host/test_rings.cpp
  LINKS reshard_host reshard_test_support Threads::Threads)
