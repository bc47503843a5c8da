// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/model_source.h"

#include <filesystem>
#include <istream>
#include <iterator>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/printable.h"
#include "sim/models/weights/config.h"
#include "sim/models/weights/roles.h"
#include "sim/models/weights/stored_dtypes.h"
#include "sim/trace/line_reader.h"
#include "sim/weights/weights.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kConfig = "config.json", kIndex = "model.safetensors.index.json";
constexpr std::size_t kMostBytes = std::size_t{1} << 24;

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}
bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::string in_folder(const std::string& folder, std::string_view name) {
  return fmt::format("{}{}{}", folder, folder.empty() || folder.ends_with('/') ? "" : "/", name);
}
std::string folder_of(const std::string& path) {
  if (is_folder(path)) return path;
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string read_text(const std::string& path, std::string_view what, std::string& name) {
  std::string out;
  with_file(path, what, [&](std::istream& in, const std::string& shown) {
    name = shown;
    char block[1 << 16];
    while (in.read(block, sizeof block) || in.gcount() > 0) {
      out.append(block, static_cast<std::size_t>(in.gcount()));
      if (out.size() > kMostBytes)
        throw InputError(fmt::format("{}: expected at most 16 MiB, found more", shown));
    }
  });
  return out;
}

// All tensors. Those of an index have no shapes if its files are missing.
std::vector<FileTensor> tensors_in(std::string path, Model& model) {
  if (std::string index = in_folder(path, kIndex); is_folder(path) && exists(index)) path = index;
  std::vector<FileTensor> out;
  if (path.ends_with(".index.json")) {
    auto files = read_weight_index(path);
    bool is_whole = true;
    for (const auto& [file, names] : files)
      is_whole = is_whole && exists(in_folder(folder_of(path), file));
    if (!is_whole) {
      model.notes.push_back("only the names of the index are compared, as its files are not there");
      for (const auto& [file, names] : files)
        for (const std::string& name : names) out.push_back({name, std::nullopt});
      return out;
    }
  }
  Weights weights(path);
  for (const std::string& name : weights.names()) {
    const SafetensorsEntry& entry = weights.find(name)->entry;
    Shape shape;
    if (entry.shape.size() > kMaxDims)
      throw InputError(fmt::format("{}: {}: expected at most {} dims, found {}", shown_path(path),
                                   name, kMaxDims, entry.shape.size()));
    for (std::int64_t extent : entry.shape) shape.push_back(extent);
    out.push_back({name, shape, entry.dtype_name, entry.dtype});
  }
  return out;
}

bool is_checkpoint(const std::string& path) {
  return is_folder(path) || path.ends_with(".index.json") || path.ends_with(".safetensors");
}

}  // namespace

Model read_model(const ModelSource& source) {
  const bool has_files = is_checkpoint(source.path);
  std::string config = source.config.empty() && has_files
                           ? in_folder(folder_of(source.path), kConfig)
                       : source.config.empty() ? source.path
                                               : source.config;
  if (has_files && !exists(config))
    throw InputError(fmt::format(
        "{}: expected a config.json next to it, for heads and experts, found none; --config names "
        "another",
        shown_path(source.path)));
  std::string name;
  std::string text = read_text(config, "a model's config.json", name);
  Model model = parse_config(text, name);
  std::vector<FileTensor> tensors;
  if (has_files) tensors = tensors_in(source.path, model);
  if (!source.roles.empty()) {
    std::string roles = read_text(source.roles, "a file of roles", name);
    apply_roles(parse_roles(roles, name), tensors, model, name);
  }
  if (has_files) {
    check_file(model, tensors, shown_path(source.path));
    take_stored_dtypes(tensors, model, shown_path(source.path));
  }
  return model;
}

}  // namespace reshard::sim
