// SPDX-License-Identifier: BSD-3-Clause
// The header of a safetensors file: 8 bytes, the length of a JSON object, little-endian; the
// object, by name {"dtype", "shape", "data_offsets": [begin, end]}; then the data. Each byte of it
// belongs to one tensor. Tensors are row-major and little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace reshard::sim {

struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;      // "BF16"
  std::optional<DType> dtype;  // nothing: one that layouts cannot have, such as U32
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// In the order of their data. `place` names the file in messages. Throws InputError for whatever
// the format does not allow.
std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& place);

}  // namespace reshard::sim
