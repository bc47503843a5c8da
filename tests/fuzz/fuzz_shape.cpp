// SPDX-License-Identifier: BSD-3-Clause
// Shapes, and dtypes after a newline.
#include "core/base/dtype.h"
#include "core/layout/layout.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = fuzz::text_of(data, size);
  std::string_view first = input.substr(0, input.find('\n'));
  fuzz::refused_or_fine([&] {
    Shape shape = parse_shape(first);
    if (parse_shape(text(shape)) != shape) fuzz::broken("a shape is not read back");
  });
  return fuzz::refused_or_fine([&] {
    DType dtype = parse_dtype(first.size() < input.size() ? input.substr(first.size() + 1) : input);
    if (parse_dtype(text(dtype)) != dtype) fuzz::broken("a dtype is not read back");
  });
}
