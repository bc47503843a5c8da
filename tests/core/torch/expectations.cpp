// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/torch/expectations.h"

#include <fstream>

#include "core/base/errors.h"

namespace reshard {

std::vector<std::string> torch_lines(const std::string& name) {
  std::ifstream in("tests/torch/data/" + name);
  std::vector<std::string> lines;
  bool version = false;
  for (std::string line; std::getline(in, line);) {
    if (line.substr(0, 1) == "#")
      version = version || line.find("with torch 2.") != std::string::npos;
    else
      lines.push_back(line);
  }
  if (!version || lines.empty())
    throw InputError(name + ": expected lines below a header that names the torch version");
  return lines;
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> out{""};
  for (char c : text) {
    if (c == separator)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

std::pair<std::string, std::vector<std::string>> keyed_values(const std::string& line) {
  std::size_t colon = line.find(": ");
  RESHARD_CHECK(colon != std::string::npos, line);
  return {line.substr(0, colon), parts_of(std::string_view(line).substr(colon + 2), ' ')};
}

const std::string& TorchPalette::placement(char letter) const {
  for (const auto& [name, placement] : letters)
    if (name == letter) return placement;
  throw InputError(std::string("expected a letter of the palette, found ") + letter);
}

Layout TorchPalette::layout(const std::string& word, std::string_view shape,
                            std::string_view dtype) const {
  std::string text;
  for (char letter : word) text += placement(letter);
  return parse_layout(shape, dtype, mesh, text);
}

TorchPalette parse_palette(const std::vector<std::string>& words) {
  TorchPalette out;
  RESHARD_CHECK(words.size() > 3 && words[0] == "mesh" && words[2] == "palette", "a palette line");
  out.mesh = torch_mesh(words[1]);
  // "x=_S(0, 2)" was split at its space; "shape" and what follows belong to the caller.
  for (std::size_t i = 3; i < words.size() && words[i] != "shape"; ++i) {
    if (words[i].size() > 1 && words[i][1] == '=')
      out.letters.emplace_back(words[i][0], words[i].substr(2));
    else
      out.letters.back().second += words[i];
  }
  out.words = {""};
  for (int axis = 0; axis < out.mesh->axes(); ++axis) {
    std::vector<std::string> longer;
    for (const std::string& word : out.words)
      for (const auto& [letter, placement] : out.letters) longer.push_back(word + letter);
    out.words = std::move(longer);
  }
  return out;
}

MeshRef torch_mesh(std::string_view text) { return std::make_shared<const Mesh>(parse_mesh(text)); }

}  // namespace reshard
