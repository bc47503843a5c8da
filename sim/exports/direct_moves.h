// SPDX-License-Identifier: BSD-3-Clause
// Plans in which every rank gets what it needs directly from a source, and the places of their
// moves in buffers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/layout/box_index.h"
#include "sim/exports/exports.h"

namespace reshard::sim {

// Calls visit(rank that has the source, rank that has the destination, move). Throws InputError
// naming `format` if the plan folds, relays, or writes zeros that are not padding.
template <class Visit>
void for_each_direct_move(const Plan& plan, std::string_view format, Visit&& visit);

// One piece of a move: equal extents, each end in one buffer.
struct MovePiece {
  std::string_view source_buffer, destination_buffer;
  StridedView source, destination;  // in elements
  Box box;                          // of the tensor
  std::int64_t element_bytes;
};

class BufferPlaces {
 public:
  // The input must outlive this.
  explicit BufferPlaces(const ExportInput& input) : input_(input) {}

  std::vector<MovePiece> pieces_of(Rank from, Rank to, const Move& move);
  std::string_view name_of(TensorId tensor);  // export_name

 private:
  struct Shard {
    std::vector<StoredPlace> places;      // of stored buffers
    std::vector<std::string_view> names;  // by place
    std::vector<Part> parts;              // of the tensor, by place
    std::optional<BoxIndex> index;
  };
  const Shard& shard(BufferId buffer, Rank rank);
  void add_place(Shard& shard, const Layout& layout, std::int32_t position, StoredPlace place,
                 std::string_view name);

  const ExportInput& input_;
  std::map<std::pair<BufferId, Rank>, Shard> shards_;
  std::map<TensorId, std::string> names_;
};

// ---- implementation

void check_direct(const Plan& plan, std::string_view format);

template <class Visit>
void for_each_direct_move(const Plan& plan, std::string_view format, Visit&& visit) {
  check_direct(plan, format);
  for (const Step& step : plan.steps) {
    if (const CopyStep* copy = copy_of(step))
      for (const CopyStep::SlotMoves& part : copy->parts)
        for_each_move(copy->moves, part.moves, [&](const Move& move) {
          visit(plan.rank_of(part.slot), plan.rank_of(part.slot), move);
        });
    if (const ExchangeStep* exchange = exchange_of(step))
      for (const ExchangeStep::Message& message : exchange->messages)
        for_each_move(exchange->moves, message.moves, [&](const Move& move) {
          visit(plan.rank_of(message.source), plan.rank_of(message.destination), move);
        });
  }
}

}  // namespace reshard::sim
