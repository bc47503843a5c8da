// SPDX-License-Identifier: BSD-3-Clause
#include "core/traffic/communicator_policy.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard {

std::string_view text(CommunicatorPolicy policy) {
  constexpr std::array<std::string_view, kCommunicatorPolicies.size()> kNames{
      "eager", "cached", "pairwise", "stream-per-pair", "split"};
  return kNames[to_index(policy)];
}

CommunicatorPolicy parse_communicators(std::string_view name, std::string_view field) {
  std::string names;
  for (CommunicatorPolicy policy : kCommunicatorPolicies) {
    if (text(policy) == name) return policy;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", text(policy));
  }
  throw InputError(fmt::format("{}: expected one of {}, found {}", field, names, quoted(name)));
}

}  // namespace reshard
