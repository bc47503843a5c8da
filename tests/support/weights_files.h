// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints made up for tests: tensors of random bytes, and safetensors files with them.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/stored/stored.h"
#include "tests/support/prng.h"

namespace reshard::test {

// A folder that is removed with what it has.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "reshardXXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The 8 bytes of its length, the header, the data.
inline std::string safetensors_of(const std::string& header, const std::string& data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}

using TensorBytes = std::map<std::string, std::string>;  // by name

inline TensorBytes draw_bytes(const ModelTensors& tensors, Prng& prng) {
  TensorBytes out;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto id = id_of<ModelTensorId>(t);
    if (tensors[id].same_as != id) continue;
    std::string& bytes = out[tensors[id].name];
    std::int64_t count = element_count(tensors[id].shape) * size_bytes(tensors[id].dtype);
    for (std::int64_t i = 0; i < count; ++i) bytes += static_cast<char>(prng.below(256));
  }
  return out;
}

inline std::string safetensors_of(const ModelTensors& tensors, const TensorBytes& bytes) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}", data;
  for (const auto& [name, content] : bytes) {
    const ModelTensor& tensor = *tensors.find(name);
    header += fmt::format(
        ", \"{}\": {{\"dtype\": \"{}\", \"shape\": [{}], \"data_offsets\": [{}, {}]}}", name,
        tensor.dtype == DType::BF16     ? "BF16"
        : tensor.dtype == DType::F8E4M3 ? "F8_E4M3"
                                        : "F32",
        text(tensor.shape), data.size(), data.size() + content.size());
    data += content;
  }
  return safetensors_of(header + "}", data);
}

// The buffers of all ranks of a side with the elements that they should have; padding is 0x5a.
inline std::vector<std::vector<std::byte>> filled_buffers(const Stored& side,
                                                          const TensorBytes& bytes) {
  std::vector<std::vector<std::byte>> out;
  for (const StoredBuffer& buffer : side.buffers()) {
    auto size = static_cast<std::size_t>(size_bytes(buffer.dtype));
    auto& memory = out.emplace_back(to_index(element_count(buffer.shape)) * size, std::byte{0x5a});
    for (const StoredPart& part : buffer.parts) {
      const ModelTensor& tensor = side.tensors()[side.tensors()[part.tensor].same_as];
      for (std::int64_t i = 0; i < part.box.volume(); ++i) {
        DimVector at = index_at(i, part.box.extents());
        std::int64_t place = part.offset, index = 0;
        for (int d = 0; d < at.size(); ++d) {
          place += at[d] * part.strides[d];
          index = index * tensor.shape[d] + part.box.lo[d] + at[d];
        }
        for (std::size_t b = 0; b < size; ++b)
          memory[to_index(place) * size + b] =
              static_cast<std::byte>(bytes.at(tensor.name)[to_index(index) * size + b]);
      }
    }
  }
  return out;
}

}  // namespace reshard::test
