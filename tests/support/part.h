// SPDX-License-Identifier: BSD-3-Clause
// Sanitizers make everything ten times slower: there, tests of many drawn cases take a part of
// them.
#pragma once

namespace reshard::test {

#ifndef RESHARD_TEST_PART
#define RESHARD_TEST_PART 1
#endif

// One of so many cases is tried: 1 but under sanitizers.
inline constexpr int kOneOf = RESHARD_TEST_PART;

}  // namespace reshard::test
