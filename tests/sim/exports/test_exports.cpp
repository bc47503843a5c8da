// SPDX-License-Identifier: BSD-3-Clause
// Exported copies and descriptors do what the plan does: judged as anybody's copies are.
#include <catch2/catch.hpp>

#include <sstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/check/check_file.h"
#include "sim/exports/direct_moves.h"
#include "sim/exports/exports.h"
#include "sim/exports/sha256.h"
#include "sim/trace/trace.h"
#include "tests/support/cases.h"
#include "tests/support/drawn_models.h"
#include "tests/support/oracle.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Contains;

namespace {

std::string exported(const Plan& plan, std::string_view format) {
  for (const sim::ExportRow& row : sim::exports())
    if (row.name == format) return row.write({plan}).text;
  FAIL("no such format");
  return {};
}

sim::CheckedCopies judged(const std::string& text) {
  std::istringstream in(text);
  return sim::check_copies(in, "exported");
}

bool has_partial(const Layout& layout) {
  for (int axis = 0; axis < layout.mesh().axes(); ++axis)
    if (placement_of(layout, axis).is_partial()) return true;
  return false;
}

// Products are equal, and of explicit boxes each rank has the same, one that has none maybe left
// out.
bool same_holdings(const Layout& found, const Layout& expected) {
  if (expected.is_product()) return found.text() == expected.text();
  bool same = found.dtype() == expected.dtype() && found.shape() == expected.shape();
  std::int32_t held = 0;
  for (std::int32_t position = 0; position < expected.mesh().size(); ++position) {
    if (element_count(expected.local_shape(position)) == 0) continue;
    auto at = found.mesh().position_of(expected.mesh().rank_at(position));
    same = same && at && found.boxes(*at) == expected.boxes(position) &&
           found.local_shape(*at) == expected.local_shape(position);
    ++held;
  }
  return same && found.mesh().size() == (held == 0 ? expected.mesh().size() : held);
}

Plan plan_by(const char* planner, const std::vector<Request>& requests) {
  return find_planner(planner).make(Demand(requests), {});
}

}  // namespace

TEST_CASE("Exports of drawn requests are proved by check") {
  Prng prng(5);
  int judged_ones = 0, refused = 0;
  std::int64_t copies = 0;
  for (int i = 0; i < 1500 / kOneOf; ++i) {
    std::optional<Request> request =
        prng.one_in(2) ? draw_request(prng) : draw_request_with_boxes(prng);
    if (!request || request->shape().size() == 0) continue;
    CAPTURE(i, request->text());
    Plan plan = plan_by("p2p", {*request});
    if (has_partial(request->source()) || has_partial(request->destination())) {
      ++refused;
      CHECK_THROWS_AS(exported(plan, "copies"), InputError);
      continue;
    }
    ++judged_ones;
    for (const char* format : {"copies", "descriptors"}) {
      sim::CheckedCopies found = judged(exported(plan, format));
      CHECK(found.proved());
      copies += found.copies;
    }
  }
  CHECK(judged_ones > 400 / kOneOf);
  CHECK(refused > 50 / kOneOf);
  CHECK(copies > 10'000 / kOneOf);
}

TEST_CASE("Ranges of bytes between drawn models' buffers move every element") {
  Prng prng(6);
  for (int i = 0; i < 2000 / kOneOf; ++i) {
    DrawnModel model = draw_model(prng);
    StoredRequests stored(*model.source, *model.destination);
    Plan plan = plan_by("p2p", stored.requests());
    ElementNumbers from = element_numbers(*model.source),
                   expected = element_numbers(*model.destination), found;
    for (const auto& numbers : expected) found.emplace_back(numbers.size(), -1);
    sim::ExportInput input{plan, &stored};
    sim::BufferPlaces places(input);
    sim::for_each_direct_move(plan, "test", [&](Rank source, Rank destination, const Move& move) {
      for (const sim::MovePiece& piece : places.pieces_of(source, destination, move)) {
        auto a = to_index(*model.source->find(source, piece.source_buffer)),
             b = to_index(*model.destination->find(destination, piece.destination_buffer));
        for_each_run(piece.source, piece.destination,
                     [&](std::int64_t read, std::int64_t written, std::int64_t count) {
                       for (std::int64_t k = 0; k < count; ++k) {
                         std::int64_t& place = found[b][to_index(written + k)];
                         REQUIRE(place == -1);
                         place = from[a][to_index(read + k)];
                       }
                     });
      }
    });
    INFO("case " << i);
    REQUIRE(found == expected);
  }
}

TEST_CASE("Traces of drawn jobs have their requests, and their stages in order") {
  Prng prng(7);
  int with_stages = 0;
  for (int i = 0; i < 300 / kOneOf; ++i) {
    std::vector<Request> requests;
    for (std::int64_t wanted = prng.between(1, 4); std::ssize(requests) < wanted;)
      if (std::optional<Request> drawn =
              prng.one_in(3) ? draw_request(prng) : draw_request_with_boxes(prng))
        if (drawn->shape().size() > 0)
          requests.push_back(drawn->named(fmt::format("w{}", requests.size())));
    Plan plan = plan_by("p2p", {requests.front()});
    plan.tensors = IndexVector<TensorId, Request>(requests.begin(), requests.end());
    if (requests.size() > 1 && prng.one_in(2)) {
      plan.stages = {{{TensorId{0}}, {}}, {{}, {0}}};
      for (std::size_t t = 1; t < requests.size(); ++t)
        plan.stages[1].tensors.push_back(id_of<TensorId>(t));
      ++with_stages;
    }
    sim::ExportInput input{plan};
    input.topology = "dgx-h100:4";
    std::istringstream in(sim::export_trace(input).text);
    sim::Trace trace = sim::parse_trace(in, "exported");
    INFO("case " << i);
    CHECK(trace.topology == "dgx-h100:4");
    std::vector<Request> found;
    for (const sim::TraceOperation& operation : trace.operations)
      for (const Request& request : *std::get<sim::TraceRedistribute>(operation.body).requests)
        found.push_back(request);
    REQUIRE(found.size() == requests.size());
    for (std::size_t t = 0; t < found.size(); ++t) {
      CHECK(same_holdings(found[t].source(), requests[t].source()));
      CHECK(same_holdings(found[t].destination(), requests[t].destination()));
      CHECK(found[t].name() == requests[t].name());
    }
    REQUIRE(trace.operations.size() == std::max<std::size_t>(1, plan.stages.size()));
    if (!plan.stages.empty()) CHECK(trace.operations[1].after == std::vector{OpId{0}});
  }
  CHECK(with_stages > 50 / kOneOf);
}

TEST_CASE("Neighbouring ranges are merged") {
  Request request = parse_request({"2", "", "", "", "8,4", "f32", "S(0)", "R"});
  std::string text = exported(plan_by("p2p", {request}), "descriptors");
  CHECK_THAT(text, Contains(R"({"from": {"rank": 0, "buffer": "tensor 0", "byte": 0}, )"
                            R"("to": {"rank": 1, "buffer": "tensor 0", "byte": 0}, "bytes": 64})"));
  CHECK(judged(text).copies == 4);
}

TEST_CASE("Plans with relays are no copies, and tensors need names of their own") {
  Request request = parse_request({"2x2", "", "", "", "8,4", "f32", "S(0)R", "RR"});
  CHECK_THROWS_WITH(exported(plan_by("rule", {request}), "copies"), Contains("--planner p2p"));
  Request named = parse_request({"2", "", "", "", "8,4", "f32", "S(0)", "R"}).named("w");
  CHECK_THROWS_WITH(exported(plan_by("p2p", {named, named}), "copies"), Contains("\"w\" twice"));
  CHECK_THAT(exported(plan_by("rule", {request}), "csv"), Contains("all_gather"));
}

// The examples of FIPS 180-4, and one whose padding needs a block of its own.
TEST_CASE("SHA-256") {
  CHECK(sim::sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sim::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sim::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("Mooncake's plans of drawn models are refused in one sentence, or have all operations") {
  Prng prng(7);
  int written = 0;
  for (int i = 0; i < 2000 / kOneOf; ++i) {
    DrawnModel model = draw_model(prng);
    StoredRequests stored(*model.source, *model.destination);
    Plan plan = plan_by("p2p", stored.requests());
    try {
      std::string text = sim::export_mooncake({plan, &stored}).text;
      CHECK_THAT(text, Catch::EndsWith("]}\n"));
      ++written;
    } catch (const InputError& error) {
      CHECK_THAT(error.what(), Catch::StartsWith("--emit mooncake: expected "));
    }
  }
  CHECK(written > 0);
}
