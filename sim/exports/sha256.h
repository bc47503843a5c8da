// SPDX-License-Identifier: BSD-3-Clause
// SHA-256 (FIPS 180-4): ids in the files of other programs are such digests of their content.
#pragma once

#include <string>
#include <string_view>

namespace reshard::sim {

std::string sha256_hex(std::string_view text);  // 64 lower-case digits

}  // namespace reshard::sim
