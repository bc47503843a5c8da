// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/rank_grids.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/judge/locations.h"

namespace reshard {
namespace {

constexpr std::size_t kMostRankLookups = std::size_t{1} << 20;
// If this many buffers have wrong ranks that an exchange of axes explains, it is hardly by chance.
constexpr std::size_t kFewBuffers = 3;

// The position that a rank would have if ranks were numbered with the two axes exchanged.
std::int32_t counted_otherwise(const Mesh& mesh, std::int32_t position, int a, int b) {
  MeshCoordinate at{};
  for (int i = mesh.axes() - 1; i >= 0; --i) {
    int axis = i == a ? b : i == b ? a : i;
    at[to_index(axis)] = position % mesh.axis_size(axis);
    position /= mesh.axis_size(axis);
  }
  return mesh.position_at(at);
}

std::string axis_text(const Mesh& mesh, int axis) {
  return mesh.names().empty() ? fmt::to_string(axis) : mesh.names()[axis];
}

}  // namespace

RankGrids::RankGrids(const std::vector<const CopyFault*>& faults, const Stored& source,
                     const Stored& destination)
    : source_(source),
      destination_(destination),
      source_ranks_(source.ranks()),
      destination_ranks_(destination.ranks()) {
  for (bool is_source : {false, true}) look_for(faults, is_source);
}

bool RankGrids::Exchange::explains(const Taken& taken) const {
  auto position = mesh->position_of(taken.rank);
  if (!position || taken.mesh == nullptr || !(*taken.mesh == *mesh)) return false;
  Rank meant = mesh->rank_at(counted_otherwise(*mesh, *position, a, b));
  return std::find(taken.right.begin(), taken.right.end(), meant) != taken.right.end();
}

void RankGrids::look_for(const std::vector<const CopyFault*>& faults, bool is_source) {
  const Stored& side = side_of(is_source);
  std::vector<Taken> all;
  std::size_t each =
      std::max<std::size_t>(1, (is_source ? source_ranks_ : destination_ranks_).size());
  for (const CopyFault* fault : faults) {
    if (all.size() * each > kMostRankLookups) break;
    for (Taken& taken : taken_in(*fault, is_source)) {
      taken.buffer = fault->buffer;
      all.push_back(std::move(taken));
    }
  }
  if (all.empty()) return;
  // Neighbouring buffers mostly share a mesh.
  std::vector<MeshRef> meshes;
  const Mesh* last = nullptr;
  for (const StoredBuffer& buffer : side.buffers()) {
    if (buffer.mesh.get() == last || !buffer.mesh) continue;
    last = buffer.mesh.get();
    if (std::none_of(meshes.begin(), meshes.end(),
                     [&](const MeshRef& mesh) { return *mesh == *last; }))
      meshes.push_back(buffer.mesh);
  }
  for (const MeshRef& mesh : meshes)
    for (int a = 0; a < mesh->axes(); ++a)
      for (int b = a + 1; b < mesh->axes(); ++b) {
        if (mesh->axis_size(a) == 1 || mesh->axis_size(b) == 1) continue;
        Exchange exchange{&side, mesh, a, b};
        std::set<Rank> seen;
        std::set<StoredBufferId> buffers;
        bool explains_all = true;
        for (const Taken& taken : all) {
          bool explained = exchange.explains(taken);
          explains_all =
              explains_all && (explained || taken.mesh == nullptr || !(*taken.mesh == *mesh));
          if (!explained) continue;
          seen.insert(taken.rank);
          buffers.insert(taken.buffer);
        }
        std::size_t moved = 0;
        for (std::int32_t p = 0; p < mesh->size(); ++p)
          moved += counted_otherwise(*mesh, p, a, b) == p ? 0 : 1;
        exchange.is_sure = moved > 0 && seen.size() == moved;
        if (exchange.is_sure || (explains_all && buffers.size() >= kFewBuffers))
          found_.push_back(exchange);
      }
}

// Empty if the fault is not one of a wrong rank.
std::vector<RankGrids::Taken> RankGrids::taken_in(const CopyFault& fault, bool is_source) const {
  const Stored& side = side_of(is_source);
  // Where padding is read, the element is not known; the named rank has padding where another rank
  // has the element.
  bool is_padding = fault.kind == CopyFaultKind::Padding && fault.from != Rank{-1};
  if ((fault.kind == CopyFaultKind::NotHeld || is_padding) && fault.tensor != ModelTensorId{-1}) {
    bool reads = fault.from != Rank{-1};
    if (reads != is_source) return {};
    return {
        taken_with(side, reads ? fault.from : fault.to, fault.tensor, fault.box.lo, nullptr, 0)};
  }
  bool is_wrong =
      fault.kind == CopyFaultKind::WrongIndex || fault.kind == CopyFaultKind::WrongTensor;
  if (!is_wrong) return {};
  Rank rank = is_source ? fault.from : fault.to;
  auto is = is_source ? location_of(side, rank, fault.got, fault.got_lo)
                      : location_of(side, rank, fault.tensor, fault.box.lo);
  if (!is) return {};
  return {taken_with(side, rank, is_source ? fault.tensor : fault.got,
                     is_source ? fault.box.lo : fault.got_lo, &side.buffers()[is->buffer].name,
                     is->offset)};
}

// The right ranks are those that have the element; if `buffer` is given, at this offset of their
// buffer of that name.
RankGrids::Taken RankGrids::taken_with(const Stored& side, Rank named, ModelTensorId tensor,
                                       const DimVector& index, const std::string_view* buffer,
                                       std::int64_t offset) const {
  Taken out{named, {}};
  for (Rank rank : &side == &source_ ? source_ranks_ : destination_ranks_) {
    auto there = location_of(side, rank, tensor, index);
    if (!there) continue;
    const StoredBuffer& is = side.buffers()[there->buffer];
    if (buffer != nullptr && (there->offset != offset || is.name != *buffer)) continue;
    out.right.push_back(rank);
    out.mesh = is.mesh.get();
  }
  return out;
}

std::string RankGrids::exchanged(const std::vector<CopyFault>& faults, bool sure) const {
  std::size_t ranks = std::max(source_ranks_.size(), destination_ranks_.size());
  if (found_.empty() || faults.size() * ranks > kMostRankLookups) return {};
  for (const Exchange& exchange : found_) {
    if (sure && !exchange.is_sure) continue;
    bool explains_all = std::all_of(faults.begin(), faults.end(), [&](const CopyFault& fault) {
      std::vector<Taken> list = taken_in(fault, exchange.side == &source_);
      return !list.empty() && exchange.explains(list.front());
    });
    if (explains_all)
      return fmt::format("the axes {} and {} of the ranks of the {} are exchanged",
                         axis_text(*exchange.mesh, exchange.a),
                         axis_text(*exchange.mesh, exchange.b),
                         exchange.side == &source_ ? "source" : "destination");
  }
  return {};
}

}  // namespace reshard
