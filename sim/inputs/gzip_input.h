// SPDX-License-Identifier: BSD-3-Clause
// Text that may be compressed by gzip, read as it is.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace reshard::sim {

// Calls read() with `in`, or with a stream of what it unpacks to if it begins as gzip files do; it
// can be several of them, one after another. Reading then throws InputError "NAME: ..." if the file
// is damaged or ends too early.
void with_unpacked(std::istream& in, const std::string& name,
                   const std::function<void(std::istream&)>& read);

}  // namespace reshard::sim
