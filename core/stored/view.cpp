// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/view.h"

#include <algorithm>
#include "core/base/ids.h"

namespace reshard {
namespace {

// The dims that have more than one element, by descending stride.
struct Digits {
  DimVector dims;
  int count() const { return dims.size(); }
  int operator[](int k) const { return static_cast<int>(dims[k]); }
};

Digits digits_of(const StridedView& view) {
  Digits out;
  for (int d = 0; d < view.dims(); ++d) {
    if (view.extents[d] == 1) continue;
    int k = out.count();
    out.dims.push_back(d);
    for (; k > 0 && view.strides[out[k - 1]] < view.strides[d]; --k) out.dims[k] = out.dims[k - 1];
    out.dims[k] = d;
  }
  return out;
}

// Elements [lo, hi) of the buffer, as boxes of the part. An outer step that the interval cuts is
// divided in the same way along the next dim, so a part of d dims has at most 2d - 1 boxes.
class IntervalBoxes {
 public:
  IntervalBoxes(const StridedView& part, std::int64_t first, std::vector<Meeting>& out)
      : part_(part), digits_(digits_of(part)), first_(first), out_(out) {}

  void find(std::int64_t lo, std::int64_t hi) {
    Box box = box_of(part_.extents);
    descend(0, part_.offset, box, lo, hi);
  }

 private:
  // The digits before k are fixed; `base` is the first element that has them.
  void descend(int k, std::int64_t base, Box& box, std::int64_t lo, std::int64_t hi) {
    if (k == digits_.count()) {
      if (lo <= base && base < hi) add(box, base);
      return;
    }
    int d = digits_[k];
    const std::int64_t stride = part_.strides[d], extent = part_.extents[d];
    const std::int64_t length = inner_length(k);  // elements from the first to the last of a step
    // The steps with elements in [lo, hi) are [begin, end); those that lie in it whole are [from,
    // to).
    auto at_least = [&](std::int64_t value) {  // the first step i with base + i * stride >= value
      return value <= base ? 0 : std::min(extent, ceil_div(value - base, stride));
    };
    std::int64_t begin = at_least(lo - length + 1), end = at_least(hi),
                 from = std::max(begin, at_least(lo)),
                 to = std::min(end, at_least(hi - length + 1));
    auto one = [&](std::int64_t i) {
      box.lo[d] = i;
      box.hi[d] = i + 1;
      descend(k + 1, base + i * stride, box, lo, hi);
    };
    if (from >= to) {  // no step is whole, so there are at most two
      for (std::int64_t i = begin; i < end; ++i) one(i);
    } else {
      for (std::int64_t i = begin; i < from; ++i) one(i);
      box.lo[d] = from;
      box.hi[d] = to;
      add(box, base + from * stride);
      for (std::int64_t i = to; i < end; ++i) one(i);
    }
    box.lo[d] = 0;
    box.hi[d] = extent;
  }

  std::int64_t inner_length(int k) const {
    std::int64_t out = 1;
    for (int j = k + 1; j < digits_.count(); ++j)
      out += part_.strides[digits_[j]] * (part_.extents[digits_[j]] - 1);
    return out;
  }

  void add(const Box& box, std::int64_t base) {
    Meeting found{box, base - first_, DimVector(box.dims(), 0)};
    for (int d = 0; d < box.dims(); ++d)
      if (box.extent(d) > 1) found.weights[d] = part_.strides[d];
    out_.push_back(found);
  }

  const StridedView& part_;
  Digits digits_;
  std::int64_t first_;  // the element at position 0
  std::vector<Meeting>& out_;
};

// A view of some elements of another view, and the position of each element in that one.
struct Numbered {
  StridedView view;
  std::int64_t position;
  DimVector weights;
};

// Drops steps of the view that do not reach the part. False if none is left.
bool narrow(Numbered& of, const StridedView& part) {
  StridedView& view = of.view;
  for (int d = 0; d < view.dims(); ++d) {
    const std::int64_t stride = view.strides[d];
    if (view.extents[d] == 1 || stride == 0) continue;
    std::int64_t length = view.end() - view.offset - (view.extents[d] - 1) * stride;
    std::int64_t before = part.offset - length + 1 - view.offset, after = part.end() - view.offset;
    std::int64_t begin = before <= 0 ? 0 : ceil_div(before, stride),
                 end = after <= 0 ? 0 : std::min(view.extents[d], ceil_div(after, stride));
    if (begin >= end) return false;
    view.offset += begin * stride;
    of.position += begin * of.weights[d];
    view.extents[d] = end - begin;
  }
  return view.offset < part.end() && part.offset < view.end();
}

// The case that both views have the same strides and that inner steps never add up to an outer one:
// then the shared elements are one box, and its bounds are found digit by digit.
class SameSteps {
 public:
  SameSteps(const Numbered& of, const StridedView& part)
      : of_(of), part_(part), digits_(digits_of(part)), by_(part.dims(), -1) {
    for (int d = 0; d < of.view.dims(); ++d) {
      if (of.view.extents[d] == 1) continue;
      int at = dim_with(of.view.strides[d]);
      same_ = same_ && at >= 0 && by_[at] < 0;
      if (same_) by_[at] = d;
    }
  }

  // False if this is not such a case.
  bool find(std::vector<Meeting>& out) const {
    return same_ && (find_from(0, out) || find_from(part_.offset, out));
  }

 private:
  // Digits count from the element `origin`.
  bool find_from(std::int64_t origin, std::vector<Meeting>& out) const {
    std::int64_t of_view = of_.view.offset - origin, of_part = part_.offset - origin, around = 0;
    Meeting found{box_of(part_.extents), of_.position, DimVector(part_.dims(), 0)};
    bool meets = true;
    for (int k = 0; k < digits_.count(); ++k) {
      int d = digits_[k];
      const std::int64_t stride = part_.strides[d];
      const std::int64_t a = take_digit(of_view, stride), b = take_digit(of_part, stride);
      const auto from = static_cast<int>(by_[d]);
      const std::int64_t extent = from < 0 ? 1 : of_.view.extents[from];
      if (k > 0 &&
          (around % stride != 0 || std::max(a + extent, b + part_.extents[d]) > around / stride))
        return false;
      around = stride;
      found.box.lo[d] = std::max<std::int64_t>(a - b, 0);
      found.box.hi[d] = std::min(part_.extents[d], a - b + extent);
      meets = meets && found.box.extent(d) > 0;
      if (from < 0) continue;
      found.position += (found.box.lo[d] - (a - b)) * of_.weights[from];
      if (found.box.extent(d) > 1) found.weights[d] = of_.weights[from];
    }
    if (meets && of_view == of_part) out.push_back(found);
    return true;
  }

  static std::int64_t take_digit(std::int64_t& left, std::int64_t stride) {
    std::int64_t digit = left / stride - (left % stride < 0 ? 1 : 0);
    left -= digit * stride;
    return digit;
  }
  int dim_with(std::int64_t stride) const {
    for (int k = 0; k < digits_.count(); ++k)
      if (part_.strides[digits_[k]] == stride) return digits_[k];
    return -1;
  }

  const Numbered& of_;
  const StridedView& part_;
  Digits digits_;
  DimVector by_;  // by dim of the part, the view's dim with the same stride; -1: none
  bool same_ = true;
};

// The general case, run by run: the last dims that lie without gaps make one run.
bool find_by_runs(const Numbered& of, const StridedView& part, std::int64_t& budget,
                  std::vector<Meeting>& out) {
  const StridedView& view = of.view;
  int inner = view.dims();
  std::int64_t length = 1;
  while (inner > 0 && (view.extents[inner - 1] == 1 ||
                       (view.strides[inner - 1] == length && of.weights[inner - 1] == length)))
    length *= view.extents[--inner];
  DimVector at(inner);
  do {
    if (--budget < 0) return false;
    std::int64_t lo = view.offset, position = of.position;
    for (int d = 0; d < inner; ++d) {
      lo += at[d] * view.strides[d];
      position += at[d] * of.weights[d];
    }
    IntervalBoxes(part, lo - position, out).find(lo, lo + length);
  } while (next_index(at, [&](int d) { return view.extents[d]; }));
  return true;
}

bool find(Numbered of, const StridedView& part, std::int64_t& budget, std::vector<Meeting>& out) {
  if (!narrow(of, part)) return true;
  if (SameSteps(of, part).find(out)) return true;
  // If the part spans two steps of an outer dim, each step is searched by itself.
  for (int d = 0; d < of.view.dims(); ++d) {
    if (of.view.extents[d] != 2) continue;
    Numbered half = of;
    half.view.extents[d] = 1;
    if (!find(half, part, budget, out)) return false;
    half.view.offset += half.view.strides[d];
    half.position += half.weights[d];
    return find(half, part, budget, out);
  }
  return find_by_runs(of, part, budget, out);
}

}  // namespace

std::int64_t StridedView::end() const {
  std::int64_t out = offset + 1;
  for (int d = 0; d < dims(); ++d) out += (extents[d] - 1) * strides[d];
  return out;
}

DimVector row_major(const Shape& shape) {
  DimVector out(shape.size(), 1);
  for (int d = shape.size() - 2; d >= 0; --d) out[d] = out[d + 1] * shape[d + 1];
  return out;
}

StridedView view_of(const Box& box, const Shape& buffer) {
  StridedView out{0, box.extents(), row_major(buffer)};
  for (int d = 0; d < buffer.size(); ++d) out.offset += box.lo[d] * out.strides[d];
  return out;
}

bool is_nested(const StridedView& view) {
  Digits digits = digits_of(view);
  std::int64_t length = 1;
  for (int k = digits.count() - 1; k >= 0; --k) {
    int d = digits[k];
    if (view.strides[d] < length) return false;
    length += (view.extents[d] - 1) * view.strides[d];
  }
  return true;
}

bool find_meetings(const StridedView& view, const StridedView& part, std::int64_t& budget,
                   std::vector<Meeting>& out) {
  if (view.count() == 0 || part.count() == 0) return true;
  return find({view, 0, row_major(view.extents)}, part, budget, out);
}

}  // namespace reshard
