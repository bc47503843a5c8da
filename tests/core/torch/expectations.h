// SPDX-License-Identifier: BSD-3-Clause
// Reads PyTorch's results, which tests/torch/oracle/write_data.py wrote to tests/torch/data. The
// header of each file describes its lines.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

// The lines of tests/torch/data/NAME without its header. Throws InputError if the file cannot be
// read or names no torch version.
std::vector<std::string> torch_lines(const std::string& name);

// The parts between `separator`; n separators make n + 1 parts.
std::vector<std::string> parts_of(std::string_view text, char separator);
// The key and the values of "KEY: VALUE VALUE ..."; keys may contain spaces.
std::pair<std::string, std::vector<std::string>> keyed_values(const std::string& line);

// "mesh 2x2 palette r=R a=S(0) ...": the mesh and all lists of placements from the palette, last
// axis fastest, each written as a word of the palette's letters.
struct TorchPalette {
  MeshRef mesh;
  std::vector<std::pair<char, std::string>> letters;  // letter, placement text
  std::vector<std::string> words;                     // "ra"

  const std::string& placement(char letter) const;
  Layout layout(const std::string& word, std::string_view shape, std::string_view dtype) const;
};
TorchPalette parse_palette(const std::vector<std::string>& words);

MeshRef torch_mesh(std::string_view text);

}  // namespace reshard
