// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/errors.h"

#include <fmt/format.h>

namespace reshard {

InputError InputError::in(std::string_view place) const {
  return InputError(fmt::format("{}: {}", place, what()));
}

BackendError::BackendError(const std::string& library, const std::string& call,
                           const std::string& code, int rank)
    : std::runtime_error(
          rank < 0 ? fmt::format("{}: {} failed: {}", library, call, code)
                   : fmt::format("{}: {} failed on rank {}: {}", library, call, rank, code)) {}

void fail_check(const char* condition, const char* file, int line, const std::string& detail) {
  // Only the file's name: messages must not depend on where the tree was built.
  std::string_view name(file);
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  throw CheckFailure(fmt::format("check `{}` failed at {}:{}: {}", condition, name, line, detail));
}

}  // namespace reshard
