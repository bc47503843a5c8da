// SPDX-License-Identifier: BSD-3-Clause
// Failures as the user sees them: an exit code, and sentences on standard error.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace reshard::tools {

// Thrown by commands and caught by main if a check that the user asked for did not hold, though
// nothing went wrong: sentences for standard error, then exit code 1.
struct CheckNotHeld {
  std::vector<std::string> findings;
};

// Many processes stop together, or one of them ended all; everything has already been reported.
struct Stopped {
  int exit_code;
  std::vector<std::string> reported;  // what this process reported
};

// The exit code of an exception, and its sentences for standard error.
//
//   1  a check that the user asked for did not hold
//   2  the input is wrong
//   3  a bug in reshard
//   4  a library or system call failed
struct Failure {
  int exit_code = 0;
  std::vector<std::string> reasons;
};

Failure failure_of(const std::exception_ptr& exception);

// Prints "reshard: error: REASON" on standard error, one line per reason.
void say(const std::vector<std::string>& reasons);

}  // namespace reshard::tools
