// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/failure.h"

#include <cstdio>
#include <new>

#include "core/base/errors.h"
#include "core/base/printable.h"

namespace reshard::tools {

namespace {

// Bytes per reason; a reader reads no more.
constexpr std::size_t kMostReported = 16'384;

}  // namespace

Failure failure_of(const std::exception_ptr& exception) {
  constexpr const char* kOutOfMemory =
      "out of memory; use fewer ranks or bytes (simulate and replay move fewer bytes with "
      "--data-budget, and none with --data proof)";
  try {
    std::rethrow_exception(exception);
  } catch (const CheckNotHeld& check) {
    return {1, check.findings};
  } catch (const Stopped& stopped) {
    return {stopped.exit_code, {}};
  } catch (const InputError& error) {
    return {2, {error.what()}};
  } catch (const CheckFailure& error) {
    return {3, {std::string("internal check failed, please report: ") + error.what()}};
  } catch (const BackendError& error) {
    return {4, {error.what()}};
  } catch (const std::bad_alloc&) {
    return {4, {kOutOfMemory}};
  } catch (const std::exception& error) {
    return {3, {std::string("unexpected: ") + error.what()}};
  }
}

void say(const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons)
    std::fprintf(stderr, "reshard: error: %s\n", printable_lines(reason, kMostReported).c_str());
}

}  // namespace reshard::tools
