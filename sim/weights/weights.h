// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a checkpoint as Hugging Face's tools write it: a folder with model.safetensors, or
// with model.safetensors.index.json and the files that it lists, or a single .safetensors file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/weights/mapped_file.h"
#include "sim/weights/safetensors.h"

namespace reshard::sim {

// The names of tensors by file, as a model.safetensors.index.json lists them, both ascending.
// Throws InputError.
std::map<std::string, std::vector<std::string>> read_weight_index(const std::string& path);

class Weights {
 public:
  // Reads headers only. Throws InputError if a file is missing or damaged, or lacks a tensor that
  // the index lists for it.
  explicit Weights(const std::string& path);

  struct Tensor {
    SafetensorsEntry entry;
    const MappedFile* file;
    std::string place;  // the file's name, for messages
  };
  const std::string& path() const { return path_; }
  // Null if there is no such tensor.
  const Tensor* find(std::string_view name) const;
  // Ascending.
  std::vector<std::string> names() const;

 private:
  // Adds all tensors of a file, or only those in `names`.
  void add_file(const std::string& path, const std::vector<std::string>* names);
  void add_index(const std::string& path);

  std::string path_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::unordered_map<std::string, Tensor> by_name_;
};

}  // namespace reshard::sim
