// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/request.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/layout/box_index.h"

namespace reshard {

namespace {

ReduceOp folding(ReduceOp op) { return op == ReduceOp::Avg ? ReduceOp::Sum : op; }

// The operator that all Partial axes of one side share (sum and avg count as one); nothing without
// Partial.
std::optional<ReduceOp> common_op(const Layout& layout, const char* side) {
  std::optional<ReduceOp> op;
  for (const Placement& placement : layout.placements()) {
    if (!placement.is_partial()) continue;
    if (!can_reduce(placement.op, layout.dtype()))
      throw InputError(
          fmt::format("{}: {} is not defined for {}", side, text(placement), text(layout.dtype())));
    if (op && *op != folding(placement.op))
      throw InputError(fmt::format(
          "{}: mixed partial ops are forbidden, only sum and avg commute: found {} in {}", side,
          text(placement), layout.placements_text()));
    op = folding(placement.op);
  }
  return op;
}

// R -> P(op): from one value on all ranks to addends that fold to that value.
void check_made_partial(ReduceOp op, DType dtype) {
  if (op == ReduceOp::Sum && !can_divide(dtype))
    throw InputError(
        fmt::format("R->P(sum) is forbidden for {}: it divides by the axis size", text(dtype)));
  if (op == ReduceOp::Product || op == ReduceOp::Band || op == ReduceOp::Bor ||
      op == ReduceOp::Bxor)
    throw InputError(fmt::format(
        "R->P({}) is forbidden: ranks cannot compute, each alone, addends that fold to the value",
        text(op)));
}

void check_axis(const Placement& from, const Placement& to, int axis, DType dtype) {
  if (!to.is_partial()) return;
  std::string what = fmt::format("axis {}: {}->{}", axis, text(from), text(to));
  if (from.is_shard_like() && to.op != ReduceOp::Sum)
    throw InputError(what +
                     " is forbidden: only P(sum) can fill elements outside a shard with zeros "
                     "(redistribute to R first)");
  if (from.is_strided())
    throw InputError(what +
                     " is forbidden: only plain shards can become Partial, as in PyTorch "
                     "(redistribute to R first)");
  if (from.is_partial() && from.op != to.op)
    throw InputError(what +
                     " is forbidden: addends of one reduction are not addends of another "
                     "(redistribute to R first)");
  if (from.is_replicate()) check_made_partial(to.op, dtype);
}

Digest fingerprint_of(const Layout& source, const Layout& destination) {
  Hasher hasher;
  for (const Layout* layout : {&source, &destination}) {
    hasher.add(static_cast<std::int64_t>(layout->dtype()));
    hasher.add(static_cast<std::int64_t>(layout->dims()));
    for (std::int64_t extent : layout->shape()) hasher.add(extent);
    const Mesh& mesh = layout->mesh();
    hasher.add(static_cast<std::int64_t>(mesh.axes()));
    for (std::int32_t extent : mesh.shape()) hasher.add(static_cast<std::int64_t>(extent));
    for (Rank rank : mesh.ranks()) hasher.add(static_cast<std::int64_t>(to_int(rank)));
    for (const Placement& p : layout->placements()) {
      hasher.add(static_cast<std::int64_t>(p.kind));
      hasher.add(static_cast<std::int64_t>(p.is_shard_like() ? p.dim : 0));
      hasher.add(static_cast<std::int64_t>(p.is_partial() ? static_cast<int>(p.op) : 0));
      hasher.add(p.split_factor);
    }
    for (const std::vector<int>& stack : layout->stacks())
      for (int axis : stack) hasher.add(static_cast<std::int64_t>(axis));
    if (!layout->is_product()) hasher.add(layout->placements_text());
  }
  return hasher.digest();
}

// The boxes of every cell, once.
std::vector<Box> cell_boxes(const Layout& layout) {
  std::set<std::int64_t> seen;
  std::vector<Box> out;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    if (seen.insert(layout.cell_of(position)).second)
      for (Box& box : layout.boxes(position)) out.push_back(std::move(box));
  return out;
}

// Explicit boxes need not cover the tensor.
void check_held(const Layout& source, const Layout& destination) {
  if (source.is_product()) return;
  std::vector<Box> held = cell_boxes(source);
  BoxIndex index(held);
  for (const Box& box : cell_boxes(destination)) {
    std::vector<Box> missing{box};
    index.for_each_meeting(box, [&](std::size_t i) { subtract(held[i], missing); });
    if (!missing.empty())
      throw InputError(
          fmt::format("source: expected every element that the destination needs, "
                      "found none of {}",
                      text(missing.front())));
  }
}

}  // namespace

Request::Request(Layout source, Layout destination, std::string name)
    : source_(std::move(source)), destination_(std::move(destination)), name_(std::move(name)) {
  if (source_.shape() != destination_.shape() || source_.dtype() != destination_.dtype())
    throw InputError(
        fmt::format("request: expected one shape and dtype on both sides, found {} and {}",
                    source_.text(), destination_.text()));
  std::optional<ReduceOp> from_op = common_op(source_, "source"),
                          to_op = common_op(destination_, "destination");

  check_held(source_, destination_);

  bool axes_correspond = is_product() && source_.mesh().shape() == destination_.mesh().shape();
  for (int axis = 0; axis < std::ssize(source_.placements()); ++axis) {
    const Placement& from = source_.placement(axis);
    std::int32_t size = source_.mesh().axis_size(axis);
    bool kept = axes_correspond && destination_.placement(axis).is_partial() && from.is_partial();
    if (axes_correspond && size > 1) check_axis(from, destination_.placement(axis), axis, dtype());
    if (!from.is_partial()) continue;
    fold_.axes.push_back({axis, size, !kept});
    fold_.addend_count *= size;
    if (kept) continue;
    fold_.fold_count *= size;
    if (from.op == ReduceOp::Avg) fold_.divisor *= size;
  }
  for (int axis = 0; axis < std::ssize(destination_.placements()); ++axis) {
    const Placement& to = destination_.placement(axis);
    std::int32_t size = destination_.mesh().axis_size(axis);
    if (!to.is_partial() || size == 1 || (axes_correspond && source_.placement(axis).is_partial()))
      continue;
    if (axes_correspond && source_.placement(axis).is_shard_like()) {
      fold_.zero_axes.push_back(axis);
      continue;
    }
    if (!axes_correspond) check_made_partial(to.op, dtype());
    if (to.op == ReduceOp::Sum) fold_.divisor *= size;
  }
  if (from_op && (fold_.fold_count > 1 || !to_op))
    fold_.op = *from_op;
  else if (to_op)
    fold_.op = *to_op;
  if (fold_.op == ReduceOp::Product && fold_.fold_count > 1 && fold_.divisor > 1)
    throw InputError(
        fmt::format("request: turning a folded product into P(sum) is forbidden because it would "
                    "be divided, found {} and {} (redistribute to R first)",
                    source_.placements_text(), destination_.placements_text()));

  std::vector<Rank> all = source_.mesh().ranks();
  const std::vector<Rank>& others = destination_.mesh().ranks();
  if (!same_mesh()) all.insert(all.end(), others.begin(), others.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  ranks_ = std::move(all);
  fingerprint_ = fingerprint_of(source_, destination_);
}

Request Request::as_series(std::int64_t count) const {
  RESHARD_CHECK(tensors_ == 1 && count > 1, "a series of series, or of one tensor");
  Request out(source_.stacked(count), destination_.stacked(count), name_);
  out.tensors_ = count;
  Hasher hasher;  // not that of one tensor of the same shape
  hasher.add(fingerprint_.hex());
  hasher.add(count);
  out.fingerprint_ = hasher.digest();
  return out;
}

std::int64_t Request::addend_of(std::int32_t source_position) const {
  MeshCoordinate coordinate = source_.mesh().coordinate(source_position);
  std::int64_t addend = 0;
  for (const FoldMeaning::Axis& axis : fold_.axes)
    addend = addend * axis.size + coordinate[to_index(axis.axis)];
  return addend;
}

std::vector<std::int64_t> Request::addends_wanted(std::int32_t destination_position) const {
  MeshCoordinate coordinate = destination_.mesh().coordinate(destination_position);
  std::vector<std::int64_t> out{0};
  for (const FoldMeaning::Axis& axis : fold_.axes) {
    std::vector<std::int64_t> next;
    for (std::int64_t addend : out) {
      if (!axis.folded) {
        next.push_back(addend * axis.size + coordinate[to_index(axis.axis)]);
        continue;
      }
      for (std::int32_t c = 0; c < axis.size; ++c) next.push_back(addend * axis.size + c);
    }
    out = std::move(next);
  }
  return out;
}

std::int64_t Request::zero_coordinate(std::int32_t position) const {
  if (fold_.zero_axes.empty()) return 0;
  MeshCoordinate coordinate = source_.mesh().coordinate(position);
  std::int64_t out = 0;
  for (int axis : fold_.zero_axes)
    out = out * source_.mesh().axis_size(axis) + coordinate[to_index(axis)];
  return out;
}

std::string Request::text() const {
  std::string out = fmt::format("{}[{}] {} on {}", reshard::text(dtype()), reshard::text(shape()),
                                source_.label(), shape_text(source_.mesh()));
  if (!same_mesh() || !source_.mesh().counts_from_zero())
    out += fmt::format(" (ranks {})", ranks_text(source_.mesh().ranks()));
  out += fmt::format(" -> {}", destination_.label());
  if (!same_mesh())
    out += fmt::format(" on {} (ranks {})", shape_text(destination_.mesh()),
                       ranks_text(destination_.mesh().ranks()));
  return out;
}

std::vector<std::int32_t> first_replicas(const Request& request) {
  const Layout& layout = request.source();
  // No axis counts both for the cell and for the addend, so there are at most as many of these as
  // ranks.
  IndexVector<std::int64_t, std::int32_t> first(to_index(layout.mesh().size()), -1), out;
  out.reserve(first.size());
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    std::int32_t& holder =
        first[request.addend_of(position) * layout.cell_count() + layout.cell_of(position)];
    if (holder < 0) holder = position;
    out.push_back(holder);
  }
  return out;
}

namespace {

// Errors in the ranks, by themselves or for their mesh, name the ranks' field.
MeshRef mesh_of(std::string_view mesh, const std::string& field, std::string_view ranks,
                const std::string& ranks_field) {
  if (ranks.empty()) return std::make_shared<const Mesh>(parse_mesh(mesh, {}, field));
  parse_mesh(mesh, {}, field);
  parse_ranks(ranks, ranks_field);
  try {
    return std::make_shared<const Mesh>(parse_mesh(mesh, ranks, field));
  } catch (const InputError& error) {
    throw error.in(ranks_field);
  }
}

}  // namespace

Request parse_request(const RequestTexts& texts, std::string_view prefix) {
  std::string start(prefix);
  MeshRef source_mesh = mesh_of(texts.mesh, start + "mesh", texts.ranks, start + "ranks");
  MeshRef destination_mesh = source_mesh;
  if (!texts.to_mesh.empty() || !texts.to_ranks.empty())
    destination_mesh = mesh_of(texts.to_mesh.empty() ? texts.mesh : texts.to_mesh,
                               start + "to-mesh", texts.to_ranks, start + "to-ranks");
  // parse_layout reads shape and dtype again; read here, their errors name their own fields.
  parse_shape(texts.shape, start + "shape");
  std::string dtype = texts.dtype.empty() ? "f32" : texts.dtype;
  parse_dtype(dtype, start + "dtype");
  // In sequence, so that which of two errors is reported does not depend on the compiler.
  Layout from = parse_layout(texts.shape, dtype, source_mesh, texts.from, start + "from");
  return Request(std::move(from),
                 parse_layout(texts.shape, dtype, destination_mesh, texts.to, start + "to"));
}

std::int64_t tensor_count(std::span<const Request> requests) {
  std::int64_t out = 0;
  for (const Request& request : requests) out += request.tensors();
  return out;
}

std::vector<Rank> ranks_of(std::span<const Request> requests) {
  std::vector<Rank> out;
  const std::vector<Rank>* before = nullptr;
  for (const Request& request : requests) {
    // Most tensors of a job are on the same ranks as the one before.
    if (before != nullptr && *before == request.ranks()) continue;
    before = &request.ranks();
    out.insert(out.end(), before->begin(), before->end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Digest fingerprint_of(std::span<const Request> requests) {
  if (requests.size() == 1) return requests.front().fingerprint();
  std::string all;
  for (const Request& request : requests) all += request.fingerprint().hex();
  return digest_of(all);
}

std::string text_of(std::span<const Request> requests) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i == kMost) return out + "; and " + std::to_string(requests.size() - i) + " more";
    out += (out.empty() ? "" : "; ") + requests[i].text();
  }
  return out;
}

}  // namespace reshard
