// SPDX-License-Identifier: BSD-3-Clause
// Operators that ATen has under two names: what dispatch calls them.
#pragma once

#include <string>
#include <string_view>

namespace reshard {

// "div_.Tensor" of "divide_.Tensor"; empty where it is no other name.
std::string usual_name(std::string_view name);

}  // namespace reshard
