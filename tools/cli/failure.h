// SPDX-License-Identifier: BSD-3-Clause
// Failures as the user sees them: an exit code and sentences for standard error.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace reshard::tools {

// A check that the user asked for did not hold though nothing went wrong: sentences for standard
// error before exit code 1. Thrown by commands, caught by main.
struct CheckNotHeld {
  std::vector<std::string> findings;
};

// Many processes stop together, or one of them ended all: nothing is left to be said.
struct Stopped {
  int exit_code;
  std::vector<std::string> said;  // by this process
};

// What an exception comes to: an exit code and sentences for standard error.
//
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
