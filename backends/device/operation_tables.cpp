// SPDX-License-Identifier: BSD-3-Clause
// `run` is called twice: the first pass adds up the bytes that each launch moves, which determines
// the size of its tiles; the second cuts the operations into tiles. One launch takes all copies and
// clears between two points at which later operations read what earlier ones wrote; another takes
// all folds of one dtype there.
#include "backends/device/operation_tables.h"

#include <map>
#include <optional>
#include <utility>

namespace reshard::backends {
namespace {

// Bytes that the launches between two such points write.
struct Wave {
  std::int64_t copied = 0;
  std::map<DType, std::int64_t> folded;
};

class Totals : public Operations {
 public:
  explicit Totals(const DeviceBuffers& buffers) : buffers_(buffers) {}

  void copy(const Place&, const Place& to, const DimVector& extents) override {
    waves_.back().copied += bytes(to, extents);
  }
  void fill(const Place& to, const DimVector& extents) override {
    waves_.back().copied += bytes(to, extents);
  }
  void fold(ReduceOp, std::int64_t, std::span<const Place>, const Place& to,
            const DimVector& extents) override {
    waves_.back().folded[buffers_.dtype(to.buffer)] += bytes(to, extents);
  }
  void then() override { waves_.emplace_back(); }

  const std::vector<Wave>& waves() const { return waves_; }

 private:
  std::int64_t bytes(const Place& to, const DimVector& extents) const {
    return element_count(extents) * size_bytes(buffers_.dtype(to.buffer));
  }

  const DeviceBuffers& buffers_;
  std::vector<Wave> waves_{1};
};

class Tiles : public Operations {
 public:
  Tiles(const DeviceBuffers& buffers, LaunchTables& tables, const Totals& totals)
      : buffers_(buffers), tables_(tables), totals_(totals) {
    begin(0);
  }

  void copy(const Place& from, const Place& to, const DimVector& extents) override {
    Shape source = shape(from), target = shape(to);
    copies_->copy(buffers_.data(to.buffer, to.slot), {target, to.lo},
                  buffers_.data(from.buffer, from.slot), {source, from.lo}, extents,
                  size_bytes(buffers_.dtype(to.buffer)));
  }
  void fill(const Place& to, const DimVector& extents) override {
    Shape target = shape(to);
    copies_->clear(buffers_.data(to.buffer, to.slot), {target, to.lo}, extents,
                   size_bytes(buffers_.dtype(to.buffer)));
  }
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override {
    std::vector<Shape> shapes;  // places refer to them
    std::vector<const std::byte*> data;
    std::vector<BoxPlace> places;
    shapes.reserve(operands.size());
    for (const Place& operand : operands) {
      shapes.push_back(shape(operand));
      data.push_back(buffers_.data(operand.buffer, operand.slot));
      places.push_back({shapes.back(), operand.lo});
    }
    Shape target = shape(to);
    folds_.at(buffers_.dtype(to.buffer))
        .fold(buffers_.data(to.buffer, to.slot), {target, to.lo}, data, places, extents);
    op_ = op;
    divisor_ = divisor;
  }
  void then() override { begin(wave_ + 1); }

  std::vector<LaunchTables::Id> launches() {
    finish();
    return std::move(launches_);
  }

 private:
  Shape shape(const Place& place) const { return buffers_.shape(place.buffer, place.slot); }

  void begin(std::size_t wave) {
    finish();
    wave_ = wave;
    const Wave& totals = totals_.waves()[wave];
    if (totals.copied > 0) copies_.emplace(totals.copied);
    for (auto [dtype, bytes] : totals.folded) folds_.try_emplace(dtype, bytes, size_bytes(dtype));
  }

  void finish() {
    if (copies_) launches_.push_back(tables_.add(*copies_));
    for (const auto& [dtype, tiles] : folds_)
      launches_.push_back(tables_.add(tiles, op_, dtype, divisor_));
    copies_.reset();
    folds_.clear();
  }

  const DeviceBuffers& buffers_;
  LaunchTables& tables_;
  const Totals& totals_;
  std::size_t wave_ = 0;
  std::optional<CopyTiles> copies_;
  std::map<DType, FoldTiles> folds_;
  ReduceOp op_ = ReduceOp::Sum;
  std::int64_t divisor_ = 1;
  std::vector<LaunchTables::Id> launches_;
};

}  // namespace

std::vector<LaunchTables::Id> add_operations(const std::function<void(Operations&)>& run,
                                             const DeviceBuffers& buffers, LaunchTables& tables) {
  Totals totals(buffers);
  run(totals);
  Tiles tiles(buffers, tables, totals);
  run(tiles);
  return tiles.launches();
}

}  // namespace reshard::backends
