// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/judge.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

// At most so many contiguous runs are compared one by one, which takes seconds.
constexpr std::int64_t kMostRuns = std::int64_t{1} << 23;

// The dim to sort boxes by so that few of them are open at a time: the one with the most distinct
// beginnings.
int widest_dim(const std::vector<Box>& boxes) {
  int best = 0;
  std::size_t most = 0;
  for (int d = 0; d < boxes.front().dims(); ++d) {
    std::vector<std::int64_t> begins;
    for (const Box& box : boxes) begins.push_back(box.lo[d]);
    std::sort(begins.begin(), begins.end());
    auto count = to_index(std::unique(begins.begin(), begins.end()) - begins.begin());
    if (count > most) best = d;
    most = std::max(most, count);
  }
  return best;
}

// Whether a step along each dim of the box is a step along the same dim of a row-major array.
bool steps_alike(const Box& box, const Shape& array, const DimVector& weights) {
  DimVector steps = row_major(array);
  for (int d = 0; d < box.dims(); ++d)
    if (box.extent(d) > 1 && weights[d] != steps[d]) return false;
  return true;
}

[[noreturn]] void fail_runs() {
  throw InputError(
      "expected copies that meet their parts in few contiguous runs of elements, "
      "found "
      "more than 2^23 runs");
}

}  // namespace

Judge::Judge(const Stored& source, const Stored& destination, Relays relays)
    : source_(source), destination_(destination), relays_(std::move(relays)), budget_(kMostRuns) {
  for (const StoredBuffer& buffer : destination.buffers())
    written_.emplace_back(buffer.parts.size());
}

void Judge::copy(const CopyEnd& from, const CopyEnd& to, std::int64_t line) {
  const bool two_dtypes = is_raw_of_two_dtypes(from, to);
  if (from.count() != to.count() && !two_dtypes)
    throw InputError(
        fmt::format("expected as many elements to be read as are written, found {} and {}",
                    from.count(), to.count()));
  ++copies_;
  if (to.count() == 0) return;
  if (!from.is_held || !to.is_held) return copy_unheld(from, to, line);
  bool inside = true;
  for (const auto& [side, end] : {std::pair(&source_, &from), std::pair(&destination_, &to)})
    if (!end->is_box && !is_in_buffer(*side, *end)) {
      CopyFault fault{CopyFaultKind::OutOfBuffer,
                      to.rank,
                      end == &to && to.relay < 0 ? to.buffer : StoredBufferId{-1},
                      ModelTensorId{-1},
                      {},
                      to.count()};
      fault.from = end == &to ? Rank{-1} : from.rank;
      fault.two_dtypes = two_dtypes;
      fault.why = end->relay >= 0 ? relays_.buffers()[to_index(end->relay)].name
                                  : std::string(side->buffers()[end->buffer].name);
      fault.lines = {line};
      add(std::move(fault));
      inside = false;
    }
  if (!inside) return;
  if (from.relay >= 0)
    read_relay(from, to.rank, line);
  else
    resolve(source_, from, read_);
  if (to.relay >= 0) return write_relay(from, to, line);
  resolve(destination_, to, wanted_);
  if (to.is_box) {
    std::vector<Box> left{to.box};
    for (const NamedBox& named : wanted_) subtract(named.box, left);
    for (const Box& box : left) {
      CopyFault fault{
          CopyFaultKind::NotHeld, to.rank, StoredBufferId{-1}, to.tensor, box, box.volume()};
      fault.lines = {line};
      add(std::move(fault));
    }
  }
  if (two_dtypes) add_wrong_dtype(from, line);
  for (const NamedBox& named : wanted_) {
    if (!two_dtypes) compare(named, from, line);
    written_[to_index(named.part.buffer)][to_index(named.part.part)].push_back(
        {named.box, line, from.rank});
  }
}

// Elements of a buffer that the rank does not have are neither read nor written.
void Judge::copy_unheld(const CopyEnd& from, const CopyEnd& to, std::int64_t line) {
  if (!to.is_held) {
    CopyFault fault{CopyFaultKind::NotHeld, to.rank, StoredBufferId{-1},
                    ModelTensorId{-1},      {},      to.count()};
    fault.lines = {line};
    fault.why = destination_.buffers()[to.buffer].name;
    return add(std::move(fault));
  }
  if (to.relay >= 0 || (!to.is_box && !is_in_buffer(destination_, to))) return;
  resolve(destination_, to, wanted_);
  for (const NamedBox& wanted : wanted_) {
    CopyFault fault = fault_at(CopyFaultKind::NotHeld, wanted.part, wanted.box, line);
    fault.from = from.rank;
    fault.why = source_.buffers()[from.buffer].name;
    add(std::move(fault));
    written_[to_index(wanted.part.buffer)][to_index(wanted.part.part)].push_back(
        {wanted.box, line, from.rank});
  }
}

bool Judge::is_raw_of_two_dtypes(const CopyEnd& from, const CopyEnd& to) const {
  return from.is_raw && to.is_raw && dtype_of(source_, from) != dtype_of(destination_, to);
}

// The fault names the first element that is read.
void Judge::add_wrong_dtype(const CopyEnd& from, std::int64_t line) {
  for (const NamedBox& wanted : wanted_) {
    CopyFault fault = fault_at(CopyFaultKind::WrongDtype, wanted.part, wanted.box, line);
    fault.from = from.rank;
    fault.got_dtype = dtype_of(source_, from);
    fault.reordered = true;
    if (!read_.empty()) {
      fault.got = read_.front().tensor;
      fault.got_lo = read_.front().box.lo;
    }
    add(std::move(fault));
  }
}

bool Judge::is_in_buffer(const Stored& side, const CopyEnd& end) const {
  const Shape& shape = end.relay >= 0 ? relays_.buffers()[to_index(end.relay)].shape
                                      : side.buffers()[end.buffer].shape;
  return end.view.offset >= 0 && end.view.end() <= element_count(shape);
}

DType Judge::dtype_of(const Stored& side, const CopyEnd& end) const {
  return end.relay >= 0 ? relays_.buffers()[to_index(end.relay)].dtype
                        : side.buffers()[end.buffer].dtype;
}

void Judge::resolve(const Stored& side, const CopyEnd& end, NamedBoxes& out) {
  out.clear();
  if (end.is_box)
    resolve_box(side, end, out);
  else
    resolve_view(side, end, out);
}

// If the rank holds an element twice, it is read from one place and written to all.
void Judge::resolve_box(const Stored& side, const CopyEnd& end, NamedBoxes& out) {
  DimVector weights = row_major(end.box.extents());
  std::vector<Box> left{end.box};
  for (Stored::PartId id : side.parts_of(end.rank, end.tensor)) {
    const Box& part = side[id].box;
    for (const Box& box : &side == &source_ ? left : std::vector<Box>{end.box}) {
      Box common = intersect(part, box);
      if (common.empty()) continue;
      NamedBox named{id, side.tensors()[end.tensor].same_as, common, 0,
                     DimVector(common.dims(), 0)};
      for (int d = 0; d < common.dims(); ++d) {
        named.position += (common.lo[d] - end.box.lo[d]) * weights[d];
        if (common.extent(d) > 1) named.weights[d] = weights[d];
      }
      out.push_back(named);
    }
    subtract(part, left);
    if (left.empty() && &side == &source_) return;
  }
}

void Judge::resolve_view(const Stored& side, const CopyEnd& end, NamedBoxes& out) {
  const StoredBuffer& buffer = side.buffers()[end.buffer];
  const std::vector<StoredPart>& parts = buffer.parts;
  const std::int64_t last = end.view.end();
  std::size_t i = buffer.first_part_at(end.view.offset);
  for (; i < parts.size() && parts[i].offset < last; ++i) {
    const StoredPart& part = parts[i];
    meetings_.clear();
    if (!find_meetings(end.view, part.view(), budget_, meetings_)) fail_runs();
    for (const Meeting& meeting : meetings_)
      out.push_back({{end.buffer, static_cast<std::int32_t>(i)},
                     side.tensors()[part.tensor].same_as,
                     shifted(meeting.box, part.box.lo),
                     meeting.position,
                     meeting.weights});
  }
}

// Compares what the copy reads with one box that it writes.
void Judge::compare(const NamedBox& wanted, const CopyEnd& from, std::int64_t line) {
  std::int64_t met = 0;
  std::vector<Box> boxes;
  for (const NamedBox& read : read_) {
    bool same = read.tensor == wanted.tensor && read.box == wanted.box &&
                read.position == wanted.position && read.weights == wanted.weights;
    if (same) return;
    std::vector<Meeting> meetings;
    if (!find_meetings(read.positions(), wanted.positions(), budget_, meetings)) fail_runs();
    for (const Meeting& meeting : meetings) {
      met += meeting.box.volume();
      boxes.push_back(shifted(meeting.box, wanted.box.lo));
      judge_meeting(wanted, read, meeting, from.rank, line);
    }
  }
  if (met == wanted.box.volume()) return;
  std::vector<Box> left{wanted.box};
  for (const Box& box : boxes) subtract(box, left);
  for (const Box& box : left) {
    CopyFault fault = fault_at(from.is_box ? CopyFaultKind::NotHeld : CopyFaultKind::Padding,
                               wanted.part, box, line);
    fault.from = from.rank;
    add(std::move(fault));
  }
}

// The elements that are read are counted as those of a row-major array of the box `read`. They
// arrive where they belong if the first one does and a step along each dim of `wanted` is a step
// along the same dim of that array, until a step crosses the end of the box that is read.
void Judge::judge_meeting(const NamedBox& wanted, const NamedBox& read, const Meeting& meeting,
                          Rank from, std::int64_t line) {
  const DimVector extents = read.box.extents();
  Box box = shifted(meeting.box, wanted.box.lo);
  auto got_at = [&](const DimVector& index) {
    std::int64_t position = meeting.position;
    for (int d = 0; d < index.size(); ++d) position += meeting.weights[d] * (index[d] - box.lo[d]);
    DimVector out = index_at(position, extents);
    for (int d = 0; d < out.size(); ++d) out[d] += read.box.lo[d];
    return out;
  };
  std::vector<Box> wrong{box};
  if (read.tensor == wanted.tensor && got_at(box.lo) == box.lo &&
      steps_alike(box, extents, meeting.weights))
    subtract(read.box, wrong);
  for (const Box& each : wrong) {
    CopyFault fault = fault_at(CopyFaultKind::WrongIndex, wanted.part, each, line);
    if (read.tensor != wanted.tensor) fault.kind = CopyFaultKind::WrongTensor;
    if (source_.tensors()[read.tensor].dtype != source_.tensors()[wanted.tensor].dtype)
      fault.kind = CopyFaultKind::WrongDtype;
    fault.from = from;
    fault.got = read.tensor;
    fault.got_lo = got_at(each.lo);
    fault.reordered = each.dims() != extents.size() ||
                      !contains(read.box, box_at(fault.got_lo, each.extents())) ||
                      !steps_alike(each, extents, meeting.weights);
    fault.got_dtype = read.part.buffer == StoredBufferId{-1}
                          ? source_.tensors()[read.tensor].dtype
                          : source_.buffers()[read.part.buffer].dtype;
    add(std::move(fault));
  }
}

std::vector<CopyFault> Judge::finish() {
  for (std::size_t buffer = 0; buffer < written_.size(); ++buffer)
    for (std::size_t part = 0; part < written_[buffer].size(); ++part)
      finish_part({id_of<StoredBufferId>(buffer), static_cast<std::int32_t>(part)},
                  written_[buffer][part]);
  for (const Update& update : updates_) find_torn(update);
  return std::move(faults_);
}

void Judge::finish_part(Stored::PartId id, std::vector<Written>& written) {
  Int128 volume = 0;
  for (const Written& box : written) volume += box.box.volume();
  std::size_t before = faults_.size();
  if (written.size() > 1) find_twice(id, written);
  if (volume != destination_[id].box.volume() || faults_.size() > before) find_missing(id, written);
}

// Finds elements that are written twice by a sweep along one dim.
void Judge::find_twice(Stored::PartId id, std::vector<Written>& written) {
  std::vector<Box> boxes;
  for (const Written& box : written) boxes.push_back(box.box);
  const int d = widest_dim(boxes);
  std::stable_sort(written.begin(), written.end(),
                   [d](const Written& a, const Written& b) { return a.box.lo[d] < b.box.lo[d]; });
  std::vector<const Written*> open;
  for (const Written& box : written) {
    if (box.box.dims() > 0)
      std::erase_if(open, [&](const Written* other) { return other->box.hi[d] <= box.box.lo[d]; });
    if (has_more_) return;
    for (const Written* other : open) {
      Box common = intersect(other->box, box.box);
      if (common.empty()) continue;
      CopyFault fault = fault_at(CopyFaultKind::WrittenTwice, id, common, other->line);
      if (box.line != other->line) fault.lines.push_back(box.line);
      std::sort(fault.lines.begin(), fault.lines.end());
      add(std::move(fault));
    }
    open.push_back(&box);
  }
}

void Judge::find_missing(Stored::PartId id, const std::vector<Written>& written) {
  std::vector<Box> left{destination_[id].box};
  for (const Written& box : written) subtract(box.box, left);
  for (const Box& box : left) {
    CopyFault fault = fault_at(CopyFaultKind::Missing, id, box, 0);
    fault.lines.clear();
    add(std::move(fault));
  }
}

void Judge::add(CopyFault fault) {
  has_more_ = faults_.size() >= kMostFaults;
  if (!has_more_) faults_.push_back(std::move(fault));
}

CopyFault Judge::fault_at(CopyFaultKind kind, Stored::PartId id, const Box& box,
                          std::int64_t line) const {
  CopyFault out{kind,      destination_.buffers()[id.buffer].rank,
                id.buffer, destination_[id].tensor,
                box,       box.volume()};
  out.lines = {line};
  out.part = id.part;
  return out;
}

std::string_view text(CopyFaultKind kind) {
  switch (kind) {
    case CopyFaultKind::WrongTensor:
      return "wrong tensor";
    case CopyFaultKind::WrongIndex:
      return "wrong place";
    case CopyFaultKind::Padding:
      return "padding read";
    case CopyFaultKind::NotHeld:
      return "not held";
    case CopyFaultKind::OutOfBuffer:
      return "out of buffer";
    case CopyFaultKind::WrittenTwice:
      return "written twice";
    case CopyFaultKind::Missing:
      return "missing";
    case CopyFaultKind::WrongDtype:
      return "wrong dtype";
    case CopyFaultKind::Torn:
      return "torn";
  }
  return "";
}

}  // namespace reshard
