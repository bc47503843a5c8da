// SPDX-License-Identifier: BSD-3-Clause
// Which axes move elements in a view. The input dims that a group joins and cuts into output dims
// share one index: that of an element in row-major order. A rank holds a set of such indices of the
// input and a set of the output, both ascending in memory; the view is right if the sets are equal.
//
// What remains of a dim is a list of digits of that index, (extent, stride), outermost first. An
// axis that cuts evenly takes digits off the list: their value is the rank's coordinate. So two
// shards agree if they take the same digits in the same order. An uneven cut has no digits; it is
// identified by the list that it cuts, and no other axis cuts what it leaves.
#include "core/ops/views/view_rule.h"

#include "core/base/errors.h"

namespace reshard {

namespace {

struct Digit {
  std::int64_t extent, stride;
  friend bool operator==(const Digit&, const Digit&) = default;
};

class Digits {
 public:
  int size() const { return size_; }
  Digit& operator[](int i) { return list_[checked(i, size_)]; }
  const Digit& operator[](int i) const { return list_[checked(i, size_)]; }
  void push(Digit digit) {
    list_[checked(size_, static_cast<int>(list_.size()))] = digit;
    ++size_;
  }
  void push_from(const Digits& other, int begin) {
    for (int i = begin; i < other.size(); ++i) push(other[i]);
  }
  // Drops digits of extent 1 and joins neighbours that are one digit.
  Digits shortest() const {
    Digits out;
    for (int i = 0; i < size_; ++i) {
      const Digit& digit = (*this)[i];
      Digit* last = out.size_ > 0 ? &out[out.size_ - 1] : nullptr;
      if (digit.extent == 1) continue;
      if (last && last->stride == digit.extent * digit.stride)
        *last = {last->extent * digit.extent, digit.stride};
      else
        out.push(digit);
    }
    return out;
  }
  friend bool operator==(const Digits& a, const Digits& b) {
    bool equal = a.size_ == b.size_;
    for (int i = 0; equal && i < a.size_; ++i) equal = a[i] == b[i];
    return equal;
  }

 private:
  static std::size_t checked(int i, int end) {
    RESHARD_CHECK(0 <= i && i < end, "digits of a dim");
    return to_index(i);
  }

  // One for the dim's index, and at most one more per axis that cuts it.
  std::array<Digit, kMaxAxes + 2> list_;
  int size_ = 0;
};

// The digit that an axis leaves at the end of a list when it cuts unevenly: its extent is 0 and its
// stride identifies the axis.
constexpr Digit uneven_rest(int axis) { return {0, -1 - axis}; }

// What one axis takes.
struct Taken {
  Digits digits;                  // even: these; uneven: the list that it cuts
  std::int64_t split_factor = 0;  // uneven: number of pieces cut first
  friend bool operator==(const Taken&, const Taken&) = default;
};

// Moves the outermost `count` values of the list, from `at` on, to `taken`; false if they are not
// whole digits.
bool take(Digits& list, int& at, std::int64_t count, Digits& taken) {
  while (count > 1) {
    if (at == list.size() || list[at].extent == 0) return false;
    Digit& digit = list[at];
    if (digit.extent % count == 0) {
      digit.extent /= count;
      taken.push({count, digit.stride * digit.extent});
      return true;
    }
    if (count % digit.extent != 0) return false;
    count /= digit.extent;
    taken.push(digit);
    ++at;
  }
  return true;
}

Taken cut(Digits& list, const AxisShard& shard, int axis, std::int64_t size) {
  Taken out;
  if (size == 1) return out;
  Digits rest = list, pieces;
  int at = 0;
  if (shard.kind == AxisShard::Kind::Strided && !take(rest, at, shard.split_factor, pieces)) {
    out = {list.shortest(), shard.split_factor};
    list = {};
    list.push(uneven_rest(axis));
    return out;
  }
  Digits piece, taken;
  piece.push_from(rest, at);
  at = 0;
  list = pieces;
  Digits cut_piece = piece;
  if (take(cut_piece, at, size, taken)) {
    list.push_from(cut_piece, at);
    out.digits = taken.shortest();
  } else {
    list.push(uneven_rest(axis));
    out = {piece.shortest(), 1};
  }
  list = list.shortest();
  return out;
}

using Lists = std::array<Digits, kMaxDims>;

// Sets one digit for each dim of a group: dims begin .. end - 1 of `shape`.
void start(const Shape& shape, int begin, int end, Lists& lists) {
  std::int64_t stride = 1;
  for (int d = end - 1; d >= begin; --d) {
    lists[to_index(d)] = {};
    lists[to_index(d)].push({shape[d], stride});
    stride *= shape[d];
  }
}

bool within(const AxisShard& shard, int begin, int end) {
  return shard.cuts() && shard.dim >= begin && shard.dim < end;
}

}  // namespace

AxisSet moved_axes(const ViewMap& map, const AxisShards& in, const AxisShards& out,
                   AxisSizes sizes) {
  AxisSet moved = 0;
  if (element_count(map.input) == 0) return moved;
  Lists ins, outs;
  for (int o = 0; o < map.output.size();) {
    const ViewDim& dim = map.dim(o);
    int begin = o++;
    if (dim.kind != ViewDim::Kind::Flatten && dim.kind != ViewDim::Kind::Split) continue;
    if (dim.kind == ViewDim::Kind::Split)
      while (!map.dim(o - 1).is_last) ++o;
    start(map.input, dim.first, dim.last + 1, ins);
    start(map.output, begin, o, outs);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      bool of_in = within(in[axis], dim.first, dim.last + 1), of_out = within(out[axis], begin, o);
      if (!of_in && !of_out) continue;
      int number = static_cast<int>(axis);
      Taken a, b;
      if (of_in) a = cut(ins[to_index(in[axis].dim)], in[axis], number, sizes[axis]);
      if (of_out) b = cut(outs[to_index(out[axis].dim)], out[axis], number, sizes[axis]);
      if (of_in != of_out || !(a == b)) moved |= only(number);
    }
  }
  return moved;
}

}  // namespace reshard
