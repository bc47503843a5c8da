// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/topology/topology_text.h"

namespace reshard::sim {

LineReader::LineReader(std::istream& in, std::string file)
    : in_(in), file_(std::move(file)), block_(std::size_t{1} << 16) {}

bool LineReader::refill() {
  begin_ = end_ = 0;
  if (!in_.good()) return false;
  in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
  end_ = static_cast<std::size_t>(in_.gcount());
  if (in_.bad())
    throw InputError(fmt::format("{}:{}: expected a readable file, found an error while reading",
                                 file_, line_number_));
  return end_ > 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  if (begin_ == end_ && !refill()) return false;
  ++line_number_;
  for (;;) {
    const char* from = block_.data() + begin_;
    const void* newline = std::memchr(from, '\n', end_ - begin_);
    std::size_t count = newline == nullptr
                            ? end_ - begin_
                            : static_cast<std::size_t>(static_cast<const char*>(newline) - from);
    if (line.size() + count > kMaxLineBytes)
      throw InputError(fmt::format("{}:{}: expected lines of at most 64 MiB, found a longer one",
                                   file_, line_number_));
    line.append(from, count);
    begin_ += count + (newline == nullptr ? 0 : 1);
    if (newline != nullptr || !refill()) break;
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

}  // namespace reshard::sim
