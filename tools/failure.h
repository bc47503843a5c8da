// SPDX-License-Identifier: BSD-3-Clause
// What an exception means to the user: an exit code and sentences for standard error. One place,
// because a process among many must say to the others what main says for a single one.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace reshard::tools {

//   1  a check that the user asked for did not hold
//   2  the input is wrong
//   3  a bug of reshard
//   4  a library or system call failed
struct Failure {
  int exit_code = 0;
  std::vector<std::string> reasons;
};

Failure failure_of(const std::exception_ptr& exception);

// "reshard: error: REASON" on standard error, a line each.
void say(const std::vector<std::string>& reasons);

}  // namespace reshard::tools
