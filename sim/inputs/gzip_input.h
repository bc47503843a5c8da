// SPDX-License-Identifier: BSD-3-Clause
// Reads text that may be compressed with gzip.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace reshard::sim {

// Calls read() with `in` or, if that begins like a gzip file, with a stream of the unpacked text;
// `in` can be several gzip files, one after another. Reading then throws InputError "NAME: ..." if
// the file is damaged or ends too early.
void with_unpacked(std::istream& in, const std::string& name,
                   const std::function<void(std::istream&)>& read);

}  // namespace reshard::sim
