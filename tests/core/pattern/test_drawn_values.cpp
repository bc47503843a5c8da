// SPDX-License-Identifier: BSD-3-Clause
// The meaning of random layouts and requests stays the same: which rank holds which boxes, what is
// folded, the bits of every element before and after, what a check says about wrong bytes, joined
// plans, and the messages for forbidden requests. Oracles elsewhere check that all of it is right;
// this test checks that nothing has changed, not even to equally valid values. To accept an
// intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_pattern "drawn values*"
//
// rewrites tests/core/pattern/data/drawn_values.txt.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/text/plan_text.h"
#include "tests/support/cases.h"
#include "tests/support/layout_facts.h"
#include "tests/support/pinned.h"

namespace reshard::test {
namespace {

constexpr const char* kPath = "tests/core/pattern/data/drawn_values.txt";
constexpr int kLines = 60, kDrawsPerLine = 10;

void add_layout(Hasher& hasher, const Layout& layout) {
  hasher.add(layout.text());
  hasher.add(ranks_text(layout.mesh().ranks()));
  hasher.add(
      fmt::format("{} {} {}", layout.bytes(), layout.has_strided(), layout.has_default_order()));
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    hasher.add(fmt::format("{} at {}:", text(layout.local_shape(position)),
                           text(test::global_offset(layout, position))));
    for (const Box& box : layout.boxes(position)) hasher.add(text(box));
  }
  for (int dim = 0; dim < layout.dims(); ++dim)
    for (const auto& [run, piece] : sorted_runs(layout.pieces(dim)))
      hasher.add(fmt::format("{}+{} {}", run.global_lo, run.size, piece));
}

void add_meaning(Hasher& hasher, const Request& request) {
  const FoldMeaning& fold = request.fold();
  hasher.add(fmt::format("{} {} {} {} {}|", text(fold.op), fold.addend_count, fold.divisor,
                         fold.fold_count, request.same_mesh()));
  for (const FoldMeaning::Axis& axis : fold.axes)
    hasher.add(fmt::format("{}:{}{} ", axis.axis, axis.size, axis.folded));
  hasher.add(fmt::format("{}|{}", fmt::join(fold.zero_axes, " "), ranks_text(request.ranks())));
  for (std::int32_t first : first_replicas(request)) hasher.add(std::int64_t{first});
  for (std::int32_t position = 0; position < request.destination().mesh().size(); ++position)
    hasher.add(request.zero_coordinate(position));
}

void add_shares(Hasher& hasher, const Request& request) {
  ZeroAxes axes(request);
  hasher.add(std::int64_t{axes.none()});
  const Layout& destination = request.destination();
  for (int dim = 0; dim < request.source().dims(); ++dim) {
    hasher.add(axes.share_count(dim));
    for (std::int64_t share = 0; share < axes.share_count(dim); ++share)
      for (const Run& run : axes.runs(dim, share))
        hasher.add(fmt::format("{}+{} ", run.global_lo, run.size));
    for (std::int64_t piece = 0; piece < request.source().pieces(dim).count(); ++piece)
      hasher.add(axes.share_of_piece(dim, piece));
  }
  for (std::int32_t position = 0; position < destination.mesh().size(); ++position)
    for (const Box& box : destination.boxes(position))
      if (box.dims() > 0) hasher.add(axes.values_in(box, destination.mesh().coordinate(position)));
}

void add_element(Hasher& hasher, const Request& request, const Pattern& pattern,
                 std::int64_t index) {
  std::int64_t last = request.fold().addend_count - 1;
  for (std::int64_t addend : {std::int64_t{0}, std::min<std::int64_t>(1, last), last / 2, last})
    hasher.add(static_cast<std::int64_t>(pattern.source_bits(index, addend)));
  std::int32_t end = request.destination().mesh().size() - 1;
  for (std::int32_t position : {0, end / 2, end})
    hasher.add(
        static_cast<std::int64_t>(pattern.expected_bits(index, request.addends_wanted(position))));
}

// Right bytes are found right; what a check says of one to three wrong elements.
void add_check(Hasher& hasher, const Request& request, const Pattern& pattern, Prng& prng) {
  const Layout& layout = request.destination();
  auto position = static_cast<std::int32_t>(prng.below(layout.mesh().size()));
  std::vector<std::byte> bytes =
      RequestOracle(request, pattern).destination(position, held_elements(layout, position));
  std::vector<std::int64_t> addends = request.addends_wanted(position);
  CHECK_FALSE(pattern.check(layout, position, addends, bytes));
  if (bytes.empty()) return;
  for (std::int64_t wrong = prng.between(1, 3); wrong > 0; --wrong)
    bytes[to_index(prng.below(static_cast<std::int64_t>(bytes.size())))] ^= std::byte{0x10};
  std::optional<PatternMismatch> found = pattern.check(layout, position, addends, bytes);
  if (found)
    hasher.add(fmt::format("{} at {}: {:x} {:x}", found->count, found->index, found->expected,
                           found->found));
}

void add_values(Hasher& hasher, const Request& request, Prng& prng) {
  Pattern pattern(request);
  hasher.add(std::int64_t{request.fold().fold_count == 1 && request.fold().divisor == 1});
  std::int64_t elements = element_count(request.shape());
  for (std::int64_t index : {std::int64_t{0}, elements / 2, elements - 1})
    if (index >= 0 && index < elements) add_element(hasher, request, pattern, index);
  if (elements <= 2000) add_check(hasher, request, pattern, prng);
}

std::string line_of(std::uint64_t seed) {
  Prng prng(seed);
  Hasher hasher;
  std::vector<Request> requests;
  for (int draw = 0; draw < kDrawsPerLine; ++draw) {
    DrawnPair pair = draw_pair(prng);
    add_layout(hasher, pair.source);
    add_layout(hasher, pair.destination);
    try {
      Request request(pair.source, pair.destination);
      hasher.add(request.text());
      add_meaning(hasher, request);
      add_shares(hasher, request);
      add_values(hasher, request, prng);
      requests.push_back(std::move(request));
    } catch (const InputError& error) {
      hasher.add(std::string_view(error.what()));
    }
  }
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < requests.size() && i < 4; ++i) try {
      plans.push_back(i % 2 == 0 ? plan_p2p(requests[i], {}) : plan_rule(requests[i], {}));
    } catch (const InputError& error) {
      hasher.add(std::string_view(error.what()));
    }
  if (!plans.empty()) {
    Plan joined = join(plans);
    hasher.add(to_text(joined));
    hasher.add(to_text(join({joined, plans.front()})));
    hasher.add(requests_text(joined));
  }
  return fmt::format("{}: {} of {}, {}", seed, requests.size(), kDrawsPerLine,
                     hasher.digest().hex().substr(0, 16));
}

// Folds of few and of very many addends, divided by odd and by even numbers, of every dtype.
std::string line_of(DType dtype) {
  Hasher hasher;
  int allowed = 0;
  for (const char* axes : {"2x2", "3x2", "16x2", "300x3", "2x4096", "1023x5", "1x2"})
    for (int op = 0; op < kReduceOpCount; ++op)
      for (const char* to : {"RR", "RP", "RP(sum)", "P(avg)R", "S(0)P(max)"}) {
        auto mesh = std::make_shared<const Mesh>(parse_mesh(axes));
        std::string from = fmt::format("P({})R", text(static_cast<ReduceOp>(op)));
        try {
          Request request(parse_layout("5,7", text(dtype), mesh, from),
                          parse_layout("5,7", text(dtype), mesh, to));
          Pattern pattern(request);
          for (std::int64_t index : {0, 1, 17, 34}) add_element(hasher, request, pattern, index);
          ++allowed;
        } catch (const InputError& error) {
          hasher.add(std::string_view(error.what()));
        }
      }
  // Rows that are longer than a chunk of the check.
  Prng prng(1);
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x2"));
  for (const char* to : {"RR", "S(1)R", "RS(1)"})
    for (int op = 0; op < kReduceOpCount; ++op) try {
        std::string from = fmt::format("P({})R", text(static_cast<ReduceOp>(op)));
        Request request(parse_layout("2,700", text(dtype), mesh, from),
                        parse_layout("2,700", text(dtype), mesh, to));
        add_check(hasher, request, Pattern(request), prng);
      } catch (const InputError&) {
        // Refused above, too.
      }
  return fmt::format("{}: {}, {}", text(dtype), allowed, hasher.digest().hex().substr(0, 16));
}

}  // namespace

TEST_CASE("drawn values are what they were") {
  check_lines(kPath, kLines + kDTypeCount, [](int i) {
    return i < kLines ? line_of(static_cast<std::uint64_t>(i))
                      : line_of(static_cast<DType>(i - kLines));
  });
}

}  // namespace reshard::test
