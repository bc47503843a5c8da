// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/data_check.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/pattern/pattern.h"
#include "core/traffic/accounting.h"
#include "sim/store/machine_memory.h"
#include "sim/store/store.h"

namespace reshard::sim {

namespace {

// The product of everything that cuts a dim: its multiples are cut evenly. Saturates at kMaxBytes,
// which divides no length.
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

struct ShortenedDim {
  int preference;           // 2: even, 1: keeps which shards are empty, 0: neither
  std::int64_t piece_size;  // of equal preference, longest first
  int dim;
  Shape shape;
};

std::optional<ShortenedDim> candidate(const Request& request, int dim) {
  std::int64_t length = request.shape()[dim];
  if (length <= 1) return std::nullopt;
  ShortenedDim out{0, 0, dim, request.shape()};
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

// Halves one dim; none if every dim is 0 or 1, and of explicit boxes, which have no smaller like.
std::optional<Request> halved(const Request& request) {
  if (!request.is_product()) return std::nullopt;
  std::optional<ShortenedDim> best;
  for (int dim = 0; dim < request.shape().size(); ++dim) {
    std::optional<ShortenedDim> next = candidate(request, dim);
    if (next && (!best || std::pair(next->preference, next->piece_size) >
                              std::pair(best->preference, best->piece_size)))
      best = next;
  }
  if (!best) return std::nullopt;
  return Request(resized(request.source(), best->shape),
                 resized(request.destination(), best->shape), request.name());
}

// Checks destination shards in the order of tensors, then of ranks. If a rank must hold the same as
// an earlier one, a byte-for-byte comparison with that one is tried first.
class DestinationCheck {
 public:
  DestinationCheck(const Plan& plan, const StoredRequests* stored)
      : plan_(plan), patterns_(plan, stored) {}

  PlanPatterns& patterns() { return patterns_; }

  void operator()(TensorId tensor, Rank rank, std::span<const std::byte> bytes) {
    const Request& request = plan_.request(tensor);
    const Layout& layout = request.destination();
    std::int32_t position = layout.mesh().position_of(rank).value();
    std::vector<std::int64_t> key = request.addends_wanted(position);
    key.push_back(request.zero_coordinate(position));
    key.push_back(layout.cell_of(position));
    key.push_back(static_cast<std::int64_t>(tensor));
    auto [first, is_new] = checked_.try_emplace(std::move(key), bytes);
    bool equal = !is_new && !patterns_.has_buffers() && first->second.size() == bytes.size() &&
                 std::memcmp(first->second.data(), bytes.data(), bytes.size()) == 0;
    if (!equal) check(tensor, rank, bytes);
    hasher_.add(bytes);
    elements_ += static_cast<std::int64_t>(bytes.size()) / size_bytes(request.dtype());
  }

  std::int64_t elements() const { return elements_; }
  std::optional<Digest> digest() const {
    return elements_ == 0 ? std::nullopt : std::optional(hasher_.digest());
  }

 private:
  void check(TensorId tensor, Rank rank, std::span<const std::byte> bytes) {
    std::optional<PatternMismatch> wrong = patterns_.check(tensor, rank, bytes);
    if (!wrong) return;
    const Request& request = plan_.request(tensor);
    std::string where =
        wrong->index < 0
            ? "in the padding of its shard"
            : fmt::format("at global index [{}]", text(index_at(wrong->index, request.shape())));
    throw CheckFailure(fmt::format(
        "data of {}: rank {} holds a wrong value {}: expected {}, found {} ({} of its elements are "
        "wrong)",
        tensor_text(plan_.tensors, tensor), to_int(rank), where,
        bits_text(wrong->expected, request.dtype()), bits_text(wrong->found, request.dtype()),
        wrong->count));
  }

  const Plan& plan_;
  PlanPatterns patterns_;
  std::map<std::vector<std::int64_t>, std::span<const std::byte>> checked_;
  Hasher hasher_;
  std::int64_t elements_ = 0;
};

DataReport move(const Plan& plan, const StoredRequests* stored) {
  DestinationCheck check(plan, stored);
  Store store({.as_declared = plan.frees_sources});
  std::unique_ptr<PreparedPlan> prepared = store.prepare(plan);
  check.patterns().fill(*prepared);
  prepared->run();
  take_all(*prepared, plan, std::ref(check));
  check.patterns().check_padding();
  DataReport report;
  report.checked = true;
  if (plan.tensors.size() == 1) report.shape = plan.request().shape();
  report.elements = check.elements();
  report.digest = check.digest();
  report.bytes_moved = store.bytes_moved();
  return report;
}

// The number of halvings that would bring `bytes` within the budget if they shrank in proportion.
int halvings_for(std::int64_t bytes, std::int64_t budget_bytes) {
  int halvings = 0;
  while (halvings < 62 && bytes >> halvings > budget_bytes) ++halvings;
  return halvings;
}

// Plans for smaller and smaller tensors until one is within the budget or cannot shrink further.
std::shared_ptr<const Plan> within(std::int64_t budget_bytes, std::shared_ptr<const Plan> plan,
                                   const MakePlan& replan) {
  if (!replan) return plan;
  for (std::int64_t bytes = store_bytes(*plan); bytes > budget_bytes; bytes = store_bytes(*plan)) {
    std::vector<Request> smaller;
    std::map<Digest, std::size_t> known;
    bool shrank = false;
    for (const Request& request : plan->tensors) {
      auto [at, is_new] = known.try_emplace(request.fingerprint(), smaller.size());
      smaller.push_back(is_new ? shrunk(request, halvings_for(bytes, budget_bytes))
                               : smaller[at->second]);
      shrank = shrank || smaller.back().shape() != request.shape();
    }
    if (!shrank) return plan;
    plan = replan(smaller);
  }
  return plan;
}

}  // namespace

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

PlanPatterns::PlanPatterns(const Plan& plan, const StoredRequests* stored) : plan_(plan) {
  if (stored != nullptr) images_ = std::make_unique<StoredImages>(*stored);
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request& request) {
    patterns_.emplace_back(request, tensor);
  });
}

void PlanPatterns::fill(PreparedPlan& prepared) {
  for_each_tensor(plan_.tensors, [&](TensorId tensor, const Request& request) {
    prepared.fill(
        [&](Rank rank, std::span<std::byte> bytes) {
          if (images_) return images_->gather(tensor, rank, bytes);
          std::int32_t position = request.source().mesh().position_of(rank).value();
          patterns_[tensor].fill(request.source(), position, request.addend_of(position), bytes);
        },
        tensor);
  });
}

std::optional<PatternMismatch> PlanPatterns::check(TensorId tensor, Rank rank,
                                                   std::span<const std::byte> bytes) {
  if (images_) return images_->scatter(tensor, rank, bytes);
  const Request& request = plan_.request(tensor);
  std::int32_t position = request.destination().mesh().position_of(rank).value();
  return patterns_[tensor].check(request.destination(), position, request.addends_wanted(position),
                                 bytes);
}

void PlanPatterns::check_padding() const {
  if (images_) images_->check_padding();
}

void take_all(PreparedPlan& prepared, const Plan& plan, const TakeShard& take) {
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request&) {
    prepared.take([&](Rank rank, std::span<const std::byte> bytes) { take(tensor, rank, bytes); },
                  tensor);
  });
}

std::int64_t data_bytes(const Plan& plan, const StoredRequests* stored) {
  std::int64_t shards = store_bytes(plan);
  if (stored == nullptr) return shards;
  Int128 sum = Int128{2} * shards + StoredImages::bytes_of(*stored);
  return static_cast<std::int64_t>(std::min(sum, Int128{kMaxBytes}));
}

namespace {

constexpr std::string_view kBoxes = "explicit boxes cannot be reduced",
                           kMovesNothing = "; --data proof moves nothing";

std::string shape_text(const Plan& plan) {
  return plan.tensors.size() == 1 ? text(plan.request().shape()) : "of every tensor reduced";
}

bool are_products(std::span<const Request> requests) {
  return std::all_of(requests.begin(), requests.end(),
                     [](const Request& request) { return request.is_product(); });
}

InputError too_large(std::span<const Request> requests, std::string_view needed,
                     std::int64_t memory_limit_bytes, std::string_view advice) {
  return InputError(fmt::format(
      "data of {}: moving it needs {}, above the memory limit of {}; {}",
      requests.size() <= 2 ? text_of(requests) : fmt::format("{} tensors", requests.size()), needed,
      bytes_text(memory_limit_bytes), advice));
}

Int128 destination_bytes(const Layout& layout) {
  Int128 elements = 0;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    elements += element_count(layout.local_shape(position));
  return elements * size_bytes(layout.dtype());
}

}  // namespace

void require_movable(std::span<const Request> requests, std::int64_t memory_limit_bytes) {
  if (are_products(requests)) return;
  Int128 needed = 0;
  for (const Request& request : requests) needed += destination_bytes(request.destination());
  if (needed > memory_limit_bytes)
    throw too_large(
        requests,
        "at least " + bytes_text(static_cast<std::int64_t>(std::min(needed, Int128{kMaxBytes}))),
        memory_limit_bytes, fmt::format("{}{}", kBoxes, kMovesNothing));
}

DataReport move_and_check(std::shared_ptr<const Plan> plan, const MakePlan& replan,
                          std::int64_t budget_bytes, std::int64_t memory_limit_bytes,
                          const StoredRequests* stored) {
  std::shared_ptr<const Plan> moved = within(budget_bytes, plan, replan);
  std::int64_t needed = data_bytes(*moved, stored);
  if (needed > memory_limit_bytes) {
    std::string advice = !replan ? "a plan from a file cannot be reduced"
                         : are_products(plan->tensors)
                             ? "even the smallest tensor with these layouts does not fit"
                         : stored ? "buffers cannot be reduced"
                                  : std::string(kBoxes);
    advice += kMovesNothing;
    std::shared_ptr<const Plan> fitting = within(memory_limit_bytes, moved, replan);
    if (std::int64_t fits = data_bytes(*fitting, stored); fits <= memory_limit_bytes)
      advice =
          fmt::format("use --data-budget {}, which moves shape {}", fits, shape_text(*fitting));
    throw too_large(plan->tensors, bytes_text(needed), memory_limit_bytes, advice);
  }
  DataReport report = move(*moved, stored);
  report.full_size = moved == plan;
  return report;
}

DataReport moved(const Studies& studies, const std::shared_ptr<const Plan>& plan,
                 std::int64_t budget_bytes, const StoredRequests* stored) {
  MakePlan replan = [&](std::span<const Request> smaller) { return studies.like(*plan, smaller); };
  return move_and_check(plan, replan, budget_bytes, memory_of_machine_bytes(), stored);
}

}  // namespace reshard::sim
