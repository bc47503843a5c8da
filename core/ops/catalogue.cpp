// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/catalogue.h"

namespace reshard {

std::array<std::string_view, 5> catalogue() {
  return {kPointwiseOperators, kListOperators, kTensorOperators, kShapeOperators, kImageOperators};
}

}  // namespace reshard
