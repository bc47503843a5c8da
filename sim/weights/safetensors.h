// SPDX-License-Identifier: BSD-3-Clause
// Reads the header of a safetensors file. The file consists of 8 bytes with the length of a JSON
// object, little-endian; the object, which has {"dtype", "shape", "data_offsets": [begin, end]} by
// name; and the data, in which each byte belongs to one tensor. Tensors are row-major and
// little-endian.
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
  std::optional<DType> dtype;  // nothing if layouts cannot have it, such as U32
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// In the order of the data. `place` names the file in messages. Throws InputError for anything that
// the format does not allow.
std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& place);

}  // namespace reshard::sim
