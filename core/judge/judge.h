// SPDX-License-Identifier: BSD-3-Clause
// Judges copies between the buffers of a model's ranks, made by any planner: whether every
// destination element is written exactly once, with the element that belongs there.
//
// Copies are given one by one; the parts of both sides show which elements each reads and writes. A
// copy without faults leaves only the boxes that it wrote. All copies read the sources as they were
// at the beginning, unless an Update changes them; a copy that reads a relay finds there what
// earlier copies wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/judge/copy_order.h"
#include "core/judge/relays.h"
#include "core/stored/stored.h"

namespace reshard {

// One end of a copy: a box of a tensor that a rank holds, or elements of a buffer. The elements of
// each end are counted row-major, in the order of its dims.
struct CopyEnd {
  Rank rank;
  // Whether the end is `box` of `tensor`; otherwise it is `view` of `buffer`.
  bool is_box;
  ModelTensorId tensor;
  Box box;
  StoredBufferId buffer;
  StridedView view;
  // Whether the elements are a range of bytes of the buffer, so that nothing is converted.
  bool is_raw = false;
  // If not -1, an index of Relays::buffers(), used in place of `buffer`.
  int relay = -1;
  // Whether the rank has the buffer; if not, `buffer` is another rank's buffer of that name.
  bool is_held = true;

  std::int64_t count() const { return is_box ? box.volume() : view.count(); }
};

enum class CopyFaultKind : std::uint8_t {
  WrongTensor,   // elements of another tensor arrive
  WrongIndex,    // elements of the right tensor arrive, but from other indices
  Padding,       // what is read has no element there
  NotHeld,       // the rank does not hold what is to be read or written there
  OutOfBuffer,   // what is to be read or written is outside the buffer
  WrittenTwice,  // by several copies, or several times by one
  Missing,       // nothing is written
  WrongDtype,    // elements are read as one dtype and written as another
  Torn,          // read while they may change, or partly before and partly after a change
};

// A fault of one kind in one box of one part.
struct CopyFault {
  CopyFaultKind kind;
  Rank to;                    // the rank that has the part
  StoredBufferId buffer{-1};  // of the destination; -1 where the rank has no part
  ModelTensorId tensor{-1};   // of the part; -1 for OutOfBuffer
  // The box of the tensor that the wrong elements make up. If they arrive in another order than
  // they are needed in, some elements of the box can be right by chance.
  Box box;
  std::int64_t elements;  // of the box
  // Where the wrong elements come from, for WrongTensor and WrongIndex.
  Rank from{-1};
  ModelTensorId got{-1};
  DimVector got_lo = {};
  bool reordered = false;  // what arrives is not a box of the same extents in the same order
  DType got_dtype = {};    // for WrongDtype
  bool two_dtypes =
      false;  // OutOfBuffer: a range of bytes which hold another dtype on the other side
  // The index of the part in the buffer, which can have an element of the tensor several times; -1:
  // none.
  std::int32_t part = -1;
  std::vector<std::int64_t> lines = {};  // of the copies at fault, ascending
  std::string why = {};  // Torn: what happens; OutOfBuffer, NotHeld: the buffer's name
};

// The sources of these ranks change, in all buffers or in those of one name.
struct Update {
  std::string name;
  std::vector<Rank> ranks;  // ascending
  std::optional<std::string> buffer;
  std::int64_t line;
};

class Judge {
 public:
  // Both sides must have the same tensors and outlive this. Add each line to `order()` before its
  // copy.
  Judge(const Stored& source, const Stored& destination, Relays relays = {});

  CopyOrder& order() { return order_; }
  const Relays& relays() const { return relays_; }

  // Throws InputError if the ends differ in their number of elements, or if finding the parts that
  // they meet takes too many runs.
  void copy(const CopyEnd& from, const CopyEnd& to, std::int64_t line);
  void update(Update update) { updates_.push_back(std::move(update)); }
  // All faults, in no particular order. Call it once, after the last copy.
  std::vector<CopyFault> finish();

  std::int64_t copies() const { return copies_; }
  // Calls visit(part of the destination, box of its tensor, rank that it is copied from, line) for
  // everything that was written, right or wrong.
  template <class Visit>
  void for_each_written(Visit&& visit) const;
  // Whether there were more than kMostFaults faults. Only the first kMostFaults are kept.
  static constexpr std::size_t kMostFaults = std::size_t{1} << 18;
  bool has_more() const { return has_more_; }

 private:
  // A box of a part at one end of a copy, and the position of each of its elements in the copy.
  struct NamedBox {
    Stored::PartId part;
    ModelTensorId tensor;
    Box box;
    std::int64_t position;
    DimVector weights;
    StridedView positions() const { return {position, box.extents(), weights}; }
  };
  using NamedBoxes = std::vector<NamedBox>;
  struct Written {
    Box box;
    std::int64_t line;
    Rank from;
  };

  void copy_unheld(const CopyEnd& from, const CopyEnd& to, std::int64_t line);
  void resolve(const Stored& side, const CopyEnd& end, NamedBoxes& out);
  void resolve_box(const Stored& side, const CopyEnd& end, NamedBoxes& out);
  void resolve_view(const Stored& side, const CopyEnd& end, NamedBoxes& out);
  bool is_raw_of_two_dtypes(const CopyEnd& from, const CopyEnd& to) const;
  void add_wrong_dtype(const CopyEnd& from, std::int64_t line);
  void compare(const NamedBox& wanted, const CopyEnd& from, std::int64_t line);
  void judge_meeting(const NamedBox& wanted, const NamedBox& read, const Meeting& meeting,
                     Rank from, std::int64_t line);
  bool is_in_buffer(const Stored& side, const CopyEnd& end) const;
  DType dtype_of(const Stored& side, const CopyEnd& end) const;

  // For reads of relays, and of sources that change.
  void read_relay(const CopyEnd& from, Rank to, std::int64_t line);
  void write_relay(const CopyEnd& from, const CopyEnd& to, std::int64_t line);
  void add_conflicts(const std::vector<Relays::Conflict>& conflicts, int relay, Rank to,
                     std::int64_t line, bool writes);
  void find_torn(const Update& update);
  bool changes(const Update& update, Rank rank, ModelTensorId tensor, const Box& box) const;

  void finish_part(Stored::PartId id, std::vector<Written>& written);
  void find_twice(Stored::PartId id, std::vector<Written>& written);
  void find_missing(Stored::PartId id, const std::vector<Written>& written);
  void add(CopyFault fault);
  CopyFault fault_at(CopyFaultKind kind, Stored::PartId id, const Box& box,
                     std::int64_t line) const;

  const Stored &source_, &destination_;
  Relays relays_;
  CopyOrder order_;
  std::vector<Update> updates_;
  struct RelayedRead {  // from a source into a relay
    std::int64_t line;
    Rank from, relay;
    ModelTensorId tensor;
    Box box;
  };
  std::vector<RelayedRead> relayed_;
  std::int64_t copies_ = 0, budget_;
  NamedBoxes read_, wanted_;  // of the copy being judged
  std::vector<Meeting> meetings_;
  std::vector<std::vector<std::vector<Written>>> written_;  // by buffer and part
  std::vector<CopyFault> faults_;
  bool has_more_ = false;
};

template <class Visit>
void Judge::for_each_written(Visit&& visit) const {
  for (std::size_t buffer = 0; buffer < written_.size(); ++buffer)
    for (std::size_t part = 0; part < written_[buffer].size(); ++part)
      for (const Written& written : written_[buffer][part])
        visit(Stored::PartId{id_of<StoredBufferId>(buffer), static_cast<std::int32_t>(part)},
              written.box, written.from, written.line);
}

std::string_view text(CopyFaultKind kind);

}  // namespace reshard
