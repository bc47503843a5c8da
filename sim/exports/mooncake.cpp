// SPDX-License-Identifier: BSD-3-Clause
// A LogicalTransferPlan of Mooncake with its two placements, as the adapter in
// tools/python/reshard/adapters reads them: an operation for each piece of a move, in the one form
// of its loops that Mooncake accepts, with as many contiguous dims in the inner bytes as there are.
#include <iterator>
#include <set>
#include <string>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/exports/direct_moves.h"
#include "sim/exports/mooncake_placement.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

// Mooncake's own limit.
constexpr int kMostOperations = 1'000'000;

using Fragment = MooncakePlacement::Fragment;

// Tied tensors are one, under its first name. What the destination does not have stays out.
void add_stored(MooncakePlacement& placement, const Stored& side, const Stored& destination) {
  std::set<ModelTensorId> wanted;
  for (const StoredBuffer& buffer : destination.buffers())
    for (const StoredPart& part : buffer.parts) wanted.insert(side.tensors()[part.tensor].same_as);
  for (const StoredBuffer& buffer : side.buffers()) {
    if (buffer.converts)
      throw InputError(fmt::format(
          "--emit mooncake: expected buffers as they travel, found {} of rank {}, which is "
          "converted (--emit copies writes boxes)",
          quoted(buffer.name, 200), to_int(buffer.rank)));
    for (const StoredPart& part : buffer.parts) {
      const ModelTensor& tensor = side.tensors()[side.tensors()[part.tensor].same_as];
      if (!wanted.contains(tensor.same_as)) continue;
      placement.add(buffer.rank, buffer.name, tensor.name, tensor.shape, tensor.dtype, part.box,
                    part.view());
    }
  }
}

void add_layout(MooncakePlacement& placement, const Layout& layout, const std::string& name) {
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
      placement.add(layout.mesh().rank_at(position), name, name, layout.shape(), layout.dtype(),
                    box, view_of(box_at(local_lo, box.extents()), layout.local_shape(position)));
    });
}

// The loops over one end of an operation, in bytes.
struct Loops {
  std::int64_t offset = 0;
  DimVector strides;
};

Loops loops_of(const Fragment& fragment, const Box& box, std::int64_t element_bytes) {
  Loops out{0, row_major(fragment.box.extents())};
  for (int d = 0; d < box.dims(); ++d) {
    out.strides[d] *= element_bytes;
    out.offset += (box.lo[d] - fragment.box.lo[d]) * out.strides[d];
  }
  return out;
}

// The values of the outer `dims` dims.
std::string list_text(const DimVector& values, int dims) {
  std::string out;
  for (int d = 0; d < dims; ++d) out += fmt::format("{}{}", d == 0 ? "" : ",", values[d]);
  return out;
}

std::string operation_text(const MooncakePlacement& source, const MooncakePlacement& target,
                           const Fragment& from, const Fragment& to, const MovePiece& piece) {
  Loops read = loops_of(from, piece.box, piece.element_bytes),
        written = loops_of(to, piece.box, piece.element_bytes);
  DimVector extents = piece.box.extents();
  int outer = extents.size() - 1;
  std::int64_t inner_bytes = extents[outer] * piece.element_bytes;
  while (outer > 0 && read.strides[outer - 1] == inner_bytes &&
         written.strides[outer - 1] == inner_bytes)
    inner_bytes *= extents[--outer];
  return fmt::format(
      R"({{"tensor_id":{},"source":{},"target":{},"overlap_offset":[{}],"overlap_shape":[{}],)"
      R"("source_base_offset":{},"target_base_offset":{},"inner_bytes":{},)"
      R"("outer_loop_counts":[{}],"source_strides":[{}],"target_strides":[{}]}})",
      Json(from.tensor).dump(), source.text_of(from), target.text_of(to), text(piece.box.lo),
      text(extents), read.offset, written.offset, inner_bytes, list_text(extents, outer),
      list_text(read.strides, outer), list_text(written.strides, outer));
}

}  // namespace

Exported export_mooncake(const ExportInput& input) {
  check_direct(input.plan, "mooncake");
  MooncakePlacement source("source"), target("target");
  if (input.stored != nullptr) {
    add_stored(source, input.stored->source(), input.stored->destination());
    add_stored(target, input.stored->destination(), input.stored->destination());
  } else {
    require_own_names(input.plan);
    for_each_tensor(input.plan.tensors, [&](TensorId tensor, const Request& request) {
      add_layout(source, request.source(), export_name(input.plan, tensor));
      add_layout(target, request.destination(), export_name(input.plan, tensor));
    });
  }
  source.finish();
  target.finish();

  Exported out{
      fmt::format("{{\"source_placement\": {},\n\"target_placement\": {},\n\"operations\": [",
                  source.text(), target.text())};
  BufferPlaces places(input);
  int operations = 0;
  for_each_direct_move(input.plan, "mooncake", [&](Rank from, Rank to, const Move& move) {
    for (const MovePiece& piece : places.pieces_of(from, to, move)) {
      if (++operations > kMostOperations)
        throw InputError(fmt::format(
            "--emit mooncake: expected at most {} operations, which is Mooncake's limit, found "
            "more (--emit copies writes any number)",
            kMostOperations));
      fmt::format_to(
          std::back_inserter(out.text), "{}\n{}", operations == 1 ? "" : ",",
          operation_text(source, target, source.at(from, piece.source_buffer, piece.source.offset),
                         target.at(to, piece.destination_buffer, piece.destination.offset), piece));
    }
  });
  out.text += "]}\n";
  return out;
}

}  // namespace reshard::sim
