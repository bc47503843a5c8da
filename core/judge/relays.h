// SPDX-License-Identifier: BSD-3-Clause
// Buffers between source and destination, and what they hold as copies write and read them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/judge/copy_order.h"
#include "core/stored/stored.h"

namespace reshard {

struct RelayBuffer {
  Rank rank;
  std::string name;
  Shape shape;
  DType dtype;
};

// Elements of a tensor that are consecutive both in a relay and in row-major order.
struct RelayedRun {
  std::int64_t position;  // of the first, in the copy
  std::int64_t count;
  ModelTensorId tensor;  // under the tensor's first name
  std::int64_t index;    // of the first, row-major
};

class Relays {
 public:
  // Throws InputError for a name that the rank already has.
  void add(RelayBuffer buffer);
  bool empty() const { return buffers_.empty(); }
  const std::vector<RelayBuffer>& buffers() const { return buffers_; }
  // Index of a buffer; -1 if there is none.
  int find(Rank rank, std::string_view name) const;

  // Elements that are overwritten while a copy may still read them, or that may not be written yet.
  struct Conflict {
    ModelTensorId tensor;
    std::int64_t index, count;
    std::int64_t line;  // of the other copy
    Rank reader{-1};    // the rank to which that copy takes it; -1: it writes the element
  };
  // Records a write. The runs' positions are positions in the view. Throws InputError if the buffer
  // has too many pieces.
  std::vector<Conflict> write(int relay, const StridedView& view,
                              const std::vector<RelayedRun>& runs, std::int64_t line,
                              CopyOrder& order);
  // What a copy to `reader` finds there, without elements that were never written. Conflicts are
  // appended.
  std::vector<RelayedRun> read(int relay, const StridedView& view, std::int64_t line, Rank reader,
                               CopyOrder& order, std::vector<Conflict>& conflicts);

 private:
  struct Reader {
    std::int64_t line;
    Rank rank;
  };
  struct WrittenRun {
    std::int64_t end;  // in the relay
    ModelTensorId tensor;
    std::int64_t index, line;  // of the copy that wrote it
    std::vector<Reader> readers;
  };
  using WrittenRuns = std::map<std::int64_t, WrittenRun>;  // by where they begin; disjoint

  void split(WrittenRuns& pieces, std::int64_t at);
  void overwrite(WrittenRuns& pieces, std::int64_t begin, std::int64_t end, std::int64_t line,
                 CopyOrder& order, std::vector<Conflict>& out);
  template <class Visit>
  void for_each_piece(const StridedView& view, std::int64_t position, std::int64_t count,
                      Visit&& visit);

  std::vector<RelayBuffer> buffers_;
  std::map<std::pair<Rank, std::string>, int, std::less<>> by_name_;
  std::vector<WrittenRuns> pieces_;  // by buffer
  std::int64_t budget_ = std::int64_t{1} << 23;
};

}  // namespace reshard
