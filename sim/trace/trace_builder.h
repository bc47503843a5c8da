// SPDX-License-Identifier: BSD-3-Clause
// Makes a trace of what a reader sees. The reader says at which line it is and which operations
// that line stands for; the builder keeps the limits and, when all is said, links: names in
// `after`, cycles of them, sends that meet receives. So that a reader knows its format and nothing
// else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

class TraceBuilder {
 public:
  explicit TraceBuilder(std::string file) { trace_.file = place_ = std::move(file); }

  const std::string& file() const { return trace_.file; }
  void set_topology(std::string topology) { trace_.topology = std::move(topology); }

  // All that follows is said by this line, and refused with it in front.
  void at_line(std::int64_t number);
  const std::string& place() const { return place_; }  // "FILE:LINE"
  [[noreturn]] void fail(const std::string& what) const;
  // What `parse` returns; an InputError of its own gets the place.
  template <typename Parse>
  auto placed(Parse parse) const {
    try {
      return parse();
    } catch (const InputError& error) {
      throw error.in(place_);
    }
  }

  // Of the line, where it has any: how `after` of others calls all its operations, its name in
  // reports, and the ids of the lines that all its operations come after.
  void describe(std::string id, std::string name, std::vector<std::string> after);
  // One more operation of the line. Refuses a message to the own rank, a collective that no memory
  // holds, and too much of anything.
  void add(TraceBody body, std::int32_t stream = 0, std::vector<std::int32_t> tensors = {});
  // An index for add(); those of equal name, shape and dtype are one.
  std::int32_t tensor(const std::string& name, const Shape& shape, DType dtype);
  // Ranks that are held beside those of operations count, too.
  void count_ranks(std::size_t ranks);

  // Links everything. Throws InputError for an id given twice or not at all, and for a cycle,
  // naming its lines; messages without their other end, or with one of other bytes, become
  // findings.
  Trace finish();

 private:
  TraceLine& line();

  Trace trace_;
  std::string place_;
  std::int64_t number_ = 0;
  std::vector<std::vector<std::string>> after_;  // ids as written, by line
  std::map<std::tuple<std::string, Shape, DType>, std::int32_t> tensors_;
  std::int64_t named_ranks_ = 0;
};

}  // namespace reshard::sim
