// SPDX-License-Identifier: BSD-3-Clause
// A shard's elements as rows of consecutive global indices, in local row-major order. Inner dims
// that the rank holds whole belong to the row, so that most shards are few long rows.
#pragma once

#include <array>
#include <cstdint>

#include "core/layout/layout.h"

namespace reshard {

template <class Row>
class ShardRows {
 public:
  // row(first_global_index, count) is called for consecutive pieces of the shard.
  ShardRows(const Layout& layout, std::int32_t position, Row& row)
      : row_(row), dims_(layout.dims()) {
    std::int64_t stride = 1;
    for (int d = dims_ - 1; d >= 0; --d) {
      auto at = static_cast<std::size_t>(d);
      runs_[at] = layout.runs(d, position);
      strides_[at] = stride;
      stride *= layout.shape()[d];
    }
    last_ = dims_ - 1;
    while (last_ > 0 && size_of(runs_[static_cast<std::size_t>(last_)]) == layout.shape()[last_])
      --last_;
  }

  void walk() {
    if (dims_ == 0) {
      row_(std::int64_t{0}, std::int64_t{1});
      return;
    }
    for (int d = 0; d < dims_; ++d)
      if (runs_[static_cast<std::size_t>(d)].empty()) return;
    walk(0, 0);
  }

 private:
  void walk(int dim, std::int64_t base) {
    auto at = static_cast<std::size_t>(dim);
    for (const Run& run : runs_[at]) {
      if (dim == last_) {
        row_(base + run.global_lo * strides_[at], run.size * strides_[at]);
        continue;
      }
      for (std::int64_t i = 0; i < run.size; ++i)
        walk(dim + 1, base + (run.global_lo + i) * strides_[at]);
    }
  }

  Row& row_;
  int dims_, last_;
  std::array<Runs, kMaxDims> runs_;
  std::array<std::int64_t, kMaxDims> strides_{};
};

template <class Row>
void for_each_row(const Layout& layout, std::int32_t position, Row row) {
  ShardRows<Row>(layout, position, row).walk();
}

}  // namespace reshard
