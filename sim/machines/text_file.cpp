// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machines/text_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/topology/topology_text.h"

namespace reshard::sim {

std::string read_text_file(const std::string& path, std::size_t limit_bytes) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(fmt::format("{}: expected a file, found none", path));
  if (status.type() == std::filesystem::file_type::directory)
    throw InputError(fmt::format("{}: expected a file, found a directory", path));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(
        fmt::format("{}: expected a readable file, found: {}", path, std::strerror(errno)));

  std::string text;
  std::size_t line_begin = 0, line = 1;
  std::array<char, 1 << 16> block;
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    auto count = static_cast<std::size_t>(file.gcount());
    if (text.size() + count > limit_bytes)
      throw InputError(fmt::format("{}: expected at most {} bytes, found more", path, limit_bytes));
    // Only the new block is searched: a long line must not be read again with every block.
    std::size_t from = text.size();
    text.append(block.data(), count);
    for (std::size_t end = std::min(text.find('\n', from), text.size());;
         end = std::min(text.find('\n', end + 1), text.size())) {
      if (end - line_begin > kMaxLineBytes)
        throw InputError(
            fmt::format("{}:{}: expected lines of at most 64 MiB, found a longer one", path, line));
      if (end == text.size()) break;
      line_begin = end + 1;
      ++line;
    }
  }
  if (file.bad())
    throw InputError(
        fmt::format("{}: expected a readable file, found an error while reading", path));
  return text;
}

}  // namespace reshard::sim
