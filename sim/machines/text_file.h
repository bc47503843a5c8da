// SPDX-License-Identifier: BSD-3-Clause
// Text files from outside, read without trust.
#pragma once

#include <cstddef>
#include <string>

namespace reshard::sim {

// The whole file. Throws InputError "PATH: ..." for what is missing, a directory or unreadable, for
// a line above 64 MiB, and for more than `limit_bytes` in all; reads no further than that.
std::string read_text_file(const std::string& path, std::size_t limit_bytes);

}  // namespace reshard::sim
