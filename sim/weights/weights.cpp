// SPDX-License-Identifier: BSD-3-Clause
#include "sim/weights/weights.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kFile = "model.safetensors", kIndex = "model.safetensors.index.json";
constexpr JsonLimits kIndexLimits{4, std::int64_t{1} << 24, std::size_t{1} << 20};

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// A file in the folder of the index, such as "model-00001-of-00002.safetensors"; no path.
bool is_plain_name(const std::string& file) {
  return !file.empty() && file != "." && file != ".." && file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

}  // namespace

Weights::Weights(const std::string& path) : path_(path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    if (path.ends_with(".index.json"))
      add_index(path);
    else
      add_file(path, nullptr);
    return;
  }
  std::string folder = path.ends_with('/') ? path : path + "/";
  if (std::string file = folder + std::string(kFile); exists(file))
    add_file(file, nullptr);
  else if (std::string index = folder + std::string(kIndex); exists(index))
    add_index(index);
  else
    throw InputError(fmt::format("{}: expected a folder with {} or {}, found neither",
                                 shown_path(path), kFile, kIndex));
}

const Weights::Tensor* Weights::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &found->second;
}

void Weights::add_file(const std::string& path, const std::vector<std::string>* names) {
  files_.push_back(std::make_unique<MappedFile>(path, "a safetensors file"));
  const MappedFile* file = files_.back().get();
  std::map<std::string, SafetensorsEntry> there;
  for (SafetensorsEntry& entry : parse_safetensors(file->bytes(), shown_path(path)))
    there.emplace(entry.name, std::move(entry));
  if (names == nullptr) {
    for (auto& [name, entry] : there)
      by_name_.emplace(name, Tensor{std::move(entry), file, shown_path(path)});
    return;
  }
  for (const std::string& name : *names) {
    auto found = there.find(name);
    if (found == there.end())
      throw InputError(fmt::format("{}: expected tensor {}, as the index says, found none",
                                   shown_path(path), quoted(name, 200)));
    by_name_.emplace(name, Tensor{std::move(found->second), file, shown_path(path)});
  }
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : by_name_) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

std::map<std::string, std::vector<std::string>> read_weight_index(const std::string& path) {
  MappedFile file(path, "an index of safetensors files");
  std::string place = shown_path(path);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  auto index = read_json<nlohmann::json>(text, place, kIndexLimits);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw InputError(fmt::format(
        "{}: expected \"weight_map\", an object of file names by tensor, found none", place));
  std::map<std::string, std::vector<std::string>> names_by_file;
  for (const auto& [name, value] : index["weight_map"].items()) {
    if (!value.is_string() || !is_plain_name(value.get_ref<const std::string&>()))
      throw InputError(
          fmt::format("{}: tensor {}: expected the name of a file beside the index, "
                      "found {}",
                      place, quoted(name, 200), shown(value)));
    names_by_file[value.get_ref<const std::string&>()].push_back(name);
  }
  return names_by_file;
}

void Weights::add_index(const std::string& path) {
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  for (const auto& [name, tensors] : read_weight_index(path)) {
    if (!exists(folder + name))
      throw InputError(fmt::format("{}: expected the file {}, which has tensor {}, found none",
                                   shown_path(path), quoted(name, 200),
                                   quoted(tensors.front(), 200)));
    add_file(folder + name, &tensors);
  }
}

}  // namespace reshard::sim
