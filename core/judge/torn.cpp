// SPDX-License-Identifier: BSD-3-Clause
// Judges elements that pass through relays, and sources that change while they are read.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/judge/judge.h"

namespace reshard {
namespace {

// Calls visit(box, position of its first element in the run, weights) for elements of a tensor that
// are consecutive in row-major order; they make at most 2d-1 boxes.
template <class Visit>
void for_each_box(const ModelTensor& tensor, std::int64_t index, std::int64_t count,
                  Visit&& visit) {
  std::vector<Meeting> meetings;
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();  // an interval is one run
  find_meetings({index, {count}, {1}}, {0, tensor.shape, row_major(tensor.shape)}, budget,
                meetings);
  for (const Meeting& meeting : meetings) visit(meeting.box, meeting.position, meeting.weights);
}

}  // namespace

void Judge::read_relay(const CopyEnd& from, Rank to, std::int64_t line) {
  read_.clear();
  std::vector<Relays::Conflict> conflicts;
  for (const RelayedRun& run : relays_.read(from.relay, from.view, line, to, order_, conflicts))
    for_each_box(
        source_.tensors()[run.tensor], run.index, run.count,
        [&](const Box& box, std::int64_t position, const DimVector& weights) {
          read_.push_back(
              {{StoredBufferId{-1}, -1}, run.tensor, box, run.position + position, weights});
        });
  add_conflicts(conflicts, from.relay, to, line, false);
}

// Goes through the copy's elements in runs that are consecutive in their tensor.
void Judge::write_relay(const CopyEnd& from, const CopyEnd& to, std::int64_t line) {
  if (is_raw_of_two_dtypes(from, to))
    throw InputError(fmt::format("expected a relay of the dtype that it gets, found {} for {}",
                                 text(dtype_of(destination_, to)), text(dtype_of(source_, from))));
  if (!is_nested(to.view))
    throw InputError(
        "expected a relay whose elements are written once, found strides that overlap");
  std::vector<Box> left;
  if (from.is_box) left.push_back(from.box);
  std::vector<RelayedRun> runs;
  for (const NamedBox& named : read_) {
    if (from.is_box) subtract(named.box, left);
    const ModelTensor& tensor = source_.tensors()[named.tensor];
    StridedView elements = view_of(named.box, tensor.shape);
    for_each_run(
        named.positions(), elements,
        [&](std::int64_t position, std::int64_t index, std::int64_t count) {
          if (--budget_ < 0)
            throw InputError("expected relays in few contiguous pieces, found more than 2^23");
          runs.push_back({position, count, named.tensor, index});
        });
    if (from.relay < 0) relayed_.push_back({line, from.rank, to.rank, named.tensor, named.box});
  }
  for (const Box& box : left) {
    CopyFault fault{
        CopyFaultKind::NotHeld, to.rank, StoredBufferId{-1}, from.tensor, box, box.volume()};
    fault.from = from.rank;
    fault.lines = {line};
    add(std::move(fault));
  }
  add_conflicts(relays_.write(to.relay, to.view, runs, line, order_), to.relay, to.rank, line,
                true);
}

void Judge::add_conflicts(const std::vector<Relays::Conflict>& conflicts, int relay, Rank to,
                          std::int64_t line, bool writes) {
  const RelayBuffer& buffer = relays_.buffers()[to_index(relay)];
  for (const Relays::Conflict& conflict : conflicts) {
    bool is_read = conflict.reader != Rank{-1};
    for_each_box(source_.tensors()[conflict.tensor], conflict.index, conflict.count,
                 [&](const Box& box, std::int64_t, const DimVector&) {
                   CopyFault fault{CopyFaultKind::Torn,
                                   is_read ? conflict.reader : to,
                                   StoredBufferId{-1},
                                   conflict.tensor,
                                   box,
                                   box.volume()};
                   fault.from = buffer.rank;
                   fault.lines = {std::min(line, conflict.line), std::max(line, conflict.line)};
                   fault.why = fmt::format("is {} '{}' of rank {} while line {} may {}",
                                           writes ? "overwritten in" : "read from", buffer.name,
                                           to_int(buffer.rank), conflict.line,
                                           is_read ? "read it" : "not have written it yet");
                   add(std::move(fault));
                 });
  }
}

bool Judge::changes(const Update& update, Rank rank, ModelTensorId tensor, const Box& box) const {
  if (!std::binary_search(update.ranks.begin(), update.ranks.end(), rank)) return false;
  std::span<const Stored::PartId> parts = source_.parts_of(rank, tensor);
  return std::any_of(parts.begin(), parts.end(), [&](Stored::PartId id) {
    return (!update.buffer || source_.buffers()[id.buffer].name == *update.buffer) &&
           !intersect(source_[id].box, box).empty();
  });
}

// Everything that an update changes must be read before it, or everything after it; other reads are
// torn.
void Judge::find_torn(const Update& update) {
  struct Read {
    CopyFault fault;
    bool before, after;
  };
  std::vector<Read> reads;
  std::int64_t before = 0, after = 0;
  auto add_read = [&](CopyFault fault, Rank from, std::int64_t line) {
    Read read{std::move(fault), order_.is_before(line, update.line),
              order_.is_before(update.line, line)};
    read.fault.from = from;
    (read.before ? before : after) += read.before || read.after ? read.fault.elements : 0;
    reads.push_back(std::move(read));
  };
  for_each_written([&](Stored::PartId part, const Box& box, Rank from, std::int64_t line) {
    if (changes(update, from, destination_[part].tensor, box))
      add_read(fault_at(CopyFaultKind::Torn, part, box, line), from, line);
  });
  for (const RelayedRead& read : relayed_)
    if (changes(update, read.from, read.tensor, read.box)) {
      CopyFault fault{CopyFaultKind::Torn, read.relay, StoredBufferId{-1},
                      read.tensor,         read.box,   read.box.volume()};
      fault.lines = {read.line};
      add_read(std::move(fault), read.from, read.line);
    }
  for (Read& read : reads) {
    bool is_ordered = read.before || read.after,
         is_late = before >= after ? read.after : read.before;
    if (is_ordered && !is_late) continue;
    if (is_ordered && (before == 0 || after == 0)) continue;
    read.fault.why = is_ordered ? fmt::format("is read {} '{}', though others are read {} it",
                                              read.after ? "after" : "before", update.name,
                                              read.after ? "before" : "after")
                                : fmt::format("may be read while '{}' changes it", update.name);
    read.fault.lines.push_back(update.line);
    std::sort(read.fault.lines.begin(), read.fault.lines.end());
    add(std::move(read.fault));
  }
}

}  // namespace reshard
