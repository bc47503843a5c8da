// SPDX-License-Identifier: BSD-3-Clause
// Sanitizers make everything ten times slower, so there tests with many random cases take only a
// part of them.
#pragma once

namespace reshard::test {

#ifndef RESHARD_TEST_PART
#define RESHARD_TEST_PART 1
#endif

// One in this many cases is tried: 1 except under sanitizers.
inline constexpr int kOneOf = RESHARD_TEST_PART;

}  // namespace reshard::test
