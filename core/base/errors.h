// SPDX-License-Identifier: BSD-3-Clause
// The three kinds of failure, each with its own exception type. `main` maps them to exit codes 2, 3
// and 4; nothing else exits.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace reshard {

// The user's request, trace, topology, plan text or flag is wrong or cannot be satisfied (a memory
// limit). The message is one sentence that names the place ("FILE:LINE" or the field), what was
// expected and what was found. Exit code 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  // "PLACE: what", for a caller that knows the file and line while the parser knows only the field.
  InputError in(std::string_view place) const {
    return InputError(std::string(place) + ": " + what());
  }
};

// A bug in reshard: an invariant does not hold. Exit code 3.
class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A call into MPI, CUDA, NCCL or the system failed. Exit code 4.
class BackendError : public std::runtime_error {
 public:
  // `library`: "MPI", "CUDA", "NCCL" or "system"; `call`: the call as written; `code`: the name of
  // its error code; `rank`: the global rank, or -1 if none.
  BackendError(const std::string& library, const std::string& call, const std::string& code,
               int rank)
      : std::runtime_error(library + ": " + call + " failed" +
                           (rank < 0 ? "" : " on rank " + std::to_string(rank)) + ": " + code) {}
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line,
                             const std::string& detail);

}  // namespace reshard

// Enabled in every build. `detail` is a string expression, evaluated only when the condition fails.
#define RESHARD_CHECK(condition, detail)                                             \
  do {                                                                               \
    if (!(condition)) ::reshard::fail_check(#condition, __FILE__, __LINE__, detail); \
  } while (0)
