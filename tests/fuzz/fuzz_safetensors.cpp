// SPDX-License-Identifier: BSD-3-Clause
// Safetensors files: refused, or of tensors that have every byte of the data, each once.
#include "sim/weights/safetensors.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    auto bytes = std::as_bytes(std::span(data, size));
    auto entries = sim::parse_safetensors(bytes, "input");
    std::size_t total = 0;
    for (const sim::SafetensorsEntry& entry : entries) {
      if (!entry.bytes.empty() && (entry.bytes.data() < bytes.data() ||
                                   entry.bytes.data() + entry.bytes.size() > bytes.data() + size))
        fuzz::broken("a tensor outside of the file");
      total += entry.bytes.size();
    }
    if (total + 8 > size) fuzz::broken("more data than the file has");
  });
}
