// SPDX-License-Identifier: BSD-3-Clause
// Compares a call's output on the ranks with the operator on the whole tensors. values.h defines
// when two results agree.
#pragma once

#include <optional>
#include <string>

#include "sim/dispatch/values/values.h"

namespace reshard::sim {

// Counts what is compared, and adds a finding for each mismatch.
class Comparing {
 public:
  Comparing(const Trace& trace, DispatchReport& report, const OnOutput& on_output)
      : trace_(trace), report_(report), on_output_(on_output) {}

  // `folded`: elements of the largest input per element of the output.
  void compare(const DispatchedCall& call, std::size_t output, const Array& expected,
               const Sharded& found, std::int64_t folded);

  // The same for an input that was redistributed for the call. Returns it if it is right, else
  // nothing.
  std::optional<Array> brought(const DispatchedCall& call, std::size_t input, const Array& expected,
                               const Sharded& found);

  // None, and a finding, if copies of a part differ. `what`: "output 0".
  std::optional<Array> put_together(const DispatchedCall& call, const std::string& what,
                                    const Sharded& found);

 private:
  bool agree(const DispatchedCall& call, const std::string& what, const Array& expected,
             const Array& whole, const Sharded& found, std::int64_t folded);
  void find(const DispatchedCall& call, const std::string& what);

  const Trace& trace_;
  DispatchReport& report_;
  const OnOutput& on_output_;
};

}  // namespace reshard::sim
