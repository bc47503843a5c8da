// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/shrink.h"

#include <algorithm>

namespace reshard::sim {
namespace {

// All that cuts a dim, as one factor: lengths that are its multiples are cut evenly. Saturates:
// what is that large divides nothing.
std::int64_t cuts_of(const Layout& layout, int dim) {
  std::int64_t cuts = 1;
  for (int axis : layout.stack(dim)) {
    for (std::int64_t factor :
         {std::int64_t{layout.mesh().axis_size(axis)}, layout.placement(axis).split_factor}) {
      std::optional<std::int64_t> product = checked_product(cuts, factor);
      if (!product) return kMaxBytes;
      cuts = *product;
    }
  }
  return cuts;
}

Layout resized(const Layout& layout, const Shape& shape) {
  return Layout(shape, layout.dtype(), layout.mesh_ref(), layout.placements(), layout.stacks());
}

bool same_emptiness(const Layout& a, const Layout& b, int dim) {
  const PieceTable &x = a.pieces(dim), &y = b.pieces(dim);
  for (int piece = 0; piece < x.count(); ++piece)
    if (x.runs(piece).empty() != y.runs(piece).empty()) return false;
  return true;
}

struct Candidate {
  int preference;           // higher is better
  std::int64_t piece_size;  // longest pieces first
  int dim;
  Shape shape;
};

std::optional<Candidate> candidate(const Request& request, int dim) {
  std::int64_t length = request.shape()[dim];
  if (length <= 1) return std::nullopt;
  Candidate out{0, 0, dim, request.shape()};
  out.shape[dim] = ceil_div(length, 2);
  std::int64_t from = cuts_of(request.source(), dim), to = cuts_of(request.destination(), dim);
  out.piece_size = length / std::max(from, to);
  bool even = length % 2 == 0 && length / 2 % from == 0 && length / 2 % to == 0;
  if (even)
    out.preference = 2;
  else if (same_emptiness(request.source(), resized(request.source(), out.shape), dim) &&
           same_emptiness(request.destination(), resized(request.destination(), out.shape), dim))
    out.preference = 1;
  return out;
}

}  // namespace

std::optional<Request> halved(const Request& request) {
  std::optional<Candidate> best;
  for (int dim = 0; dim < request.shape().size(); ++dim) {
    std::optional<Candidate> next = candidate(request, dim);
    if (next && (!best || std::pair(next->preference, next->piece_size) >
                              std::pair(best->preference, best->piece_size)))
      best = next;
  }
  if (!best) return std::nullopt;
  return Request(resized(request.source(), best->shape),
                 resized(request.destination(), best->shape), request.name());
}

Request shrunk(const Request& request, int halvings) {
  Request out = request;
  std::int64_t enough = ceil_div(element_count(request.shape()), std::int64_t{1} << halvings);
  while (element_count(out.shape()) > enough) {
    std::optional<Request> next = halved(out);
    if (!next) break;
    out = *std::move(next);
  }
  return out;
}

}  // namespace reshard::sim
