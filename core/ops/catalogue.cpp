// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/catalogue.h"

namespace reshard {

std::array<std::string_view, 4> catalogue() {
  return {kPointwiseOperators, kListOperators, kTensorOperators, kShapeOperators};
}

}  // namespace reshard
