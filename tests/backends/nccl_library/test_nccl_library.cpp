// SPDX-License-Identifier: BSD-3-Clause
// The real library, as far as it works without a GPU: it loads, has every function that its version
// should have, and makes unique ids.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "backends/nccl/nccl_library.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {
namespace {

TEST_CASE("the library opens and answers") {
  std::unique_ptr<NcclApi> api = open_nccl();
  CHECK(api->version() >= kNcclOldest);
  CHECK(api->error_text(NcclResult::Success) == "no error");
  NcclUniqueId first, second;
  REQUIRE(api->get_unique_id(&first) == NcclResult::Success);
  REQUIRE(api->get_unique_id(&second) == NcclResult::Success);
  CHECK(first.bytes != second.bytes);
  CHECK(api->group_start() == NcclResult::Success);
  CHECK(api->group_end() == NcclResult::Success);
  CHECK(api->group_end() == NcclResult::InvalidUsage);
}

TEST_CASE("a file that is not there or is not NCCL is named") {
  const char* before = std::getenv("RESHARD_NCCL_LIBRARY");
  std::string kept = before == nullptr ? "" : before;
  ::setenv("RESHARD_NCCL_LIBRARY", "/nonexistent/libnccl.so.2", 1);
  CHECK_THROWS_WITH(open_nccl(), Catch::Matchers::Contains("/nonexistent/libnccl.so.2"));
  ::setenv("RESHARD_NCCL_LIBRARY", "libm.so.6", 1);
  CHECK_THROWS_WITH(open_nccl(), "NCCL: dlsym(\"ncclGetVersion\") failed: not in libm.so.6");
  if (before == nullptr)
    ::unsetenv("RESHARD_NCCL_LIBRARY");
  else
    ::setenv("RESHARD_NCCL_LIBRARY", kept.c_str(), 1);
}

TEST_CASE("a library that is loaded is found by its own name, wherever it came from") {
  std::unique_ptr<NcclApi> opened = open_nccl();
  CHECK(loaded_nccl()->version() == opened->version());
}

TEST_CASE("versions as people write them") {
  CHECK(version_text(22809) == "2.28.9");
  CHECK(version_text(23007) == "2.30.7");
  CHECK(version_text(2708) == "2.7.8");
}

}  // namespace
}  // namespace reshard::backends::nccl
