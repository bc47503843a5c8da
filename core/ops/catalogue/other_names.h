// SPDX-License-Identifier: BSD-3-Clause
// Operators with two names in ATen: the name that dispatch uses.
#pragma once

#include <string>
#include <string_view>

namespace reshard {

// "div_.Tensor" for "divide_.Tensor"; empty if the name is not such an alternative.
std::string usual_name(std::string_view name);

}  // namespace reshard
