// SPDX-License-Identifier: BSD-3-Clause
// Collectives that ranks call one by one, and communicators: what matches what, and the message if
// it does not.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/trace/matching.h"
#include "tests/sim/replay/replay_case.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::trace_of;

namespace {

const std::string kCommsHeader =
    R"({"reshard_trace": 1, "comms": {"tp": "0-2", "pair": [0, 1], "dp": "0,2"}})";

// A rank's call of an all_reduce.
std::string call(int rank, int bytes, const std::string& more = R"(, "comm": "tp")",
                 const std::string& kind = "all_reduce") {
  return fmt::format(R"({{"op": "collective", "kind": "{}", "rank": {}, "bytes": {}{}}})", kind,
                     rank, bytes, more);
}

std::vector<std::string> findings_of(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const TraceFinding& finding : trace_of(kCommsHeader, lines).findings)
    out.push_back(finding.what);
  return out;
}

std::string finding_of(const std::vector<std::string>& lines) {
  std::vector<std::string> all = findings_of(lines);
  return all.size() == 1 ? all.front() : fmt::format("{} findings", all.size());
}

std::string error_of(const std::vector<std::string>& lines) {
  try {
    trace_of(kCommsHeader, lines);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

using Numbers = std::vector<std::int32_t>;

Difference::Kind kind_of(const Numbers& own, const Numbers& wanted) {
  return difference_of(own, wanted).kind;
}

}  // namespace

TEST_CASE("the least that makes two lists alike is what is said of them") {
  using Kind = Difference::Kind;
  CHECK(kind_of({}, {}) == Kind::None);
  CHECK(kind_of({1, 2, 3}, {1, 2, 3}) == Kind::None);
  auto at = [](const Numbers& own, const Numbers& wanted) { return difference_of(own, wanted).at; };
  CHECK(kind_of({1, 9, 3}, {1, 2, 3}) == Kind::Changed);
  CHECK(at({1, 9, 3}, {1, 2, 3}) == 1);
  CHECK(kind_of({1, 3}, {1, 2, 3}) == Kind::Missing);
  CHECK(at({1, 3}, {1, 2, 3}) == 1);
  CHECK(kind_of({1, 2}, {1, 2, 3}) == Kind::Missing);
  CHECK(at({1, 2}, {1, 2, 3}) == 2);
  CHECK(kind_of({1, 2, 2, 3}, {1, 2, 3}) == Kind::Extra);
  CHECK(at({1, 2, 7, 3}, {1, 2, 3}) == 2);
  CHECK(kind_of({1, 2, 3, 4}, {1, 2, 3}) == Kind::Extra);
  CHECK(at({1, 2, 3, 4}, {1, 2, 3}) == 3);
  CHECK(kind_of({}, {1}) == Kind::Missing);
  CHECK(kind_of({1, 3, 2, 4}, {1, 2, 3, 4}) == Kind::Swapped);
  Difference far = difference_of({4, 2, 3, 1, 5}, {1, 2, 3, 4, 5});
  CHECK(far.kind == Kind::Swapped);
  CHECK(far.at == 0);
  CHECK(far.other == 3);
  // Two that are others are no swap; neither is a swap with more behind it.
  CHECK(kind_of({1, 8, 9, 4}, {1, 2, 3, 4}) == Kind::Changed);
  CHECK(kind_of({1, 3, 2, 9}, {1, 2, 3, 4}) == Kind::Changed);
  CHECK(kind_of({1, 3, 2}, {1, 2, 3}) == Kind::Swapped);
  CHECK(kind_of({1, 3, 2}, {1, 2, 4}) == Kind::Changed);
  CHECK(kind_of({1, 3, 4}, {1, 2, 3}) == Kind::Changed);
  CHECK(kind_of({1, 3, 2, 5}, {1, 2, 3}) == Kind::Changed);
}

TEST_CASE("the n-th call of a rank meets the n-th of all others, wherever its line stands") {
  Trace trace = trace_of(
      kCommsHeader, {call(0, 8), call(0, 16), call(1, 8), call(2, 8), call(2, 16), call(1, 16)});
  CHECK(trace.findings.empty());
  std::vector<int> firsts;
  for (const TraceOperation& operation : trace.operations)
    firsts.push_back(std::get<TraceCall>(operation.body).first);
  CHECK(firsts == std::vector<int>{0, 1, 0, 0, 1, 1});
  CHECK(trace.runs(OpId{5}) == OpId{1});
}

TEST_CASE("a rank that never arrives is named with who waits for it") {
  CHECK(finding_of({call(0, 8), call(1, 8)}) ==
        "t.jsonl:2: rank 2 never reaches the all_reduce of 8 bytes on communicator 'tp': ranks "
        "0-1 wait for it in lines 2, 3");
  // In the midst of others: the sizes show which.
  CHECK(finding_of({call(0, 8), call(1, 8), call(2, 8), call(0, 16), call(1, 16), call(0, 32),
                    call(1, 32), call(2, 32)}) ==
        "t.jsonl:5: rank 2 never reaches the all_reduce of 16 bytes on communicator 'tp': ranks "
        "0-1 wait for it in lines 5, 6");
  // Of two, the one that has more is right.
  CHECK(finding_of({call(1, 8, R"(, "comm": "pair")")}) ==
        "t.jsonl:2: rank 1 calls all_reduce of 8 bytes in line 2, but rank 0 calls nothing on "
        "communicator 'pair' that matches it");
}

TEST_CASE("a call of another size, type or kind is named with what the others call") {
  CHECK(finding_of({call(0, 8), call(1, 9), call(2, 8)}) ==
        "t.jsonl:3: rank 1 calls all_reduce of 9 bytes in line 3, but ranks 0,2 call all_reduce of "
        "8 bytes on communicator 'tp' in lines 2, 4");
  const std::string f32 = R"(, "comm": "tp", "dtype": "f32")",
                    bf16 = R"(, "comm": "tp", "dtype": "bf16")";
  CHECK(finding_of({call(0, 8, f32), call(1, 8, f32), call(2, 8, bf16)}) ==
        "t.jsonl:4: rank 2 calls all_reduce of 8 bytes (bf16) in line 4, but ranks 0-1 call "
        "all_reduce of 8 bytes (f32) on communicator 'tp' in lines 2, 3");
  CHECK(finding_of({call(0, 8), call(1, 8, R"(, "comm": "tp")", "all_gather"), call(2, 8)}) ==
        "t.jsonl:3: rank 1 calls all_gather of 8 bytes in line 3, but ranks 0,2 call all_reduce of "
        "8 bytes on communicator 'tp' in lines 2, 4");
}

TEST_CASE(
    "two calls the wrong way round are one finding, their numbers make equal ones different") {
  CHECK(
      finding_of({call(0, 8), call(0, 16), call(1, 16), call(1, 8), call(2, 8), call(2, 16)}) ==
      "t.jsonl:4: rank 1 calls all_reduce of 16 bytes in line 4 before all_reduce of 8 bytes in "
      "line 5; ranks 0,2 call them in the opposite order in lines 2, 3, 6, 7 (communicator 'tp')");
  auto numbered = [](int rank, int seq) {
    return call(rank, 8, fmt::format(R"(, "comm": "pair", "seq": {})", seq));
  };
  CHECK(finding_of({numbered(0, 1), numbered(0, 2), numbered(1, 2), numbered(1, 1)}) ==
        "t.jsonl:4: rank 1 calls all_reduce of 8 bytes (seq 2) in line 4 before all_reduce of 8 "
        "bytes (seq 1) in line 5; rank 0 calls them in the opposite order in lines 2, 3 "
        "(communicator 'pair')");
  CHECK(findings_of({numbered(0, 1), numbered(0, 2), numbered(1, 1), numbered(1, 2)}).empty());
}

TEST_CASE("communicators have members: of the header, of the first line that says them, of all") {
  CHECK(finding_of({call(0, 8), call(1, 8), call(2, 8), call(3, 8)}) ==
        "t.jsonl:5: all_reduce on rank 3 uses communicator 'tp', which has ranks 0-2");
  CHECK(finding_of({R"({"op": "send", "rank": 0, "peer": 2, "bytes": 1, "comm": "pair"})",
                    R"({"op": "recv", "rank": 2, "peer": 0, "bytes": 1, "comm": "pair"})"}) ==
        "t.jsonl:3: recv on rank 2 uses communicator 'pair', which has ranks 0-1");
  const std::string all = R"({"op": "collective", "kind": "all_gather", "bytes": 1, )";
  CHECK(finding_of({all + R"("ranks": "0-3", "comm": "new"})",
                    all + R"("ranks": "0-2", "comm": "new"})"}) ==
        "t.jsonl:3: collective on ranks 0-2 uses communicator 'new', which has ranks 0-3");
  // Nobody says: all that use it.
  const std::string any = R"(, "comm": "any")";
  CHECK(findings_of({call(4, 8, any), call(6, 8, any)}).empty());
  CHECK(finding_of({call(4, 8, any), call(6, 8, any), call(5, 1, any)}) ==
        "t.jsonl:4: rank 5 calls all_reduce of 1 bytes in line 4, but ranks 4,6 call all_reduce of "
        "8 bytes on communicator 'any' in lines 2, 3");
}

TEST_CASE("without a name a call is of its ranks' own communicator") {
  const std::string of = R"(, "ranks": "0,3")";
  Trace trace = trace_of(kCommsHeader, {call(0, 8, of), call(3, 8, of)});
  CHECK(trace.findings.empty());
  CHECK(trace.operations[0].communicator == trace.operations[1].communicator);
  CHECK(finding_of({call(0, 8, of), call(3, 4, of)}) ==
        "t.jsonl:3: rank 3 calls all_reduce of 4 bytes in line 3, but rank 0 calls all_reduce of 8 "
        "bytes on communicator [0,3] in line 2");
  CHECK(error_of({call(0, 8, "")}) ==
        "t.jsonl:2: comm: expected comm or ranks with rank, found neither");
}

TEST_CASE("what one line says for all stands among the calls of each") {
  const std::string whole =
      R"({"op": "collective", "kind": "all_reduce", "ranks": "0-2", "bytes": 8, "comm": "tp"})";
  CHECK(findings_of({call(0, 4), call(1, 4), call(2, 4), whole}).empty());
  // Rank 2 comes to it before its call.
  CHECK(finding_of({call(0, 4), call(1, 4), whole, call(2, 4)}) ==
        "t.jsonl:4: rank 2 calls all_reduce of 8 bytes in line 4 before all_reduce of 4 bytes in "
        "line 5; ranks 0-1 call them in the opposite order in lines 2, 3, 4 (communicator 'tp')");
}

TEST_CASE("what one call says of the transport holds for all, two words are a finding") {
  auto by = [](int rank, const char* transport) {
    return call(rank, 8, fmt::format(R"(, "comm": "tp", "transport": "{}")", transport));
  };
  Trace trace = trace_of(kCommsHeader, {call(0, 8), by(1, "ideal"), call(2, 8)});
  CHECK(trace.findings.empty());
  for (const TraceOperation& operation : trace.operations)
    CHECK(operation.transport == TransportKind::Ideal);
  CHECK(finding_of({call(0, 8), by(1, "ideal"), by(2, "nccl")}) ==
        "t.jsonl:4: all_reduce of 8 bytes by nccl on rank 2 meets the one by ideal in line 3");
}

TEST_CASE("a collective that no memory holds is refused though each call alone is not") {
  const std::string many = R"(, "ranks": "0-7")";
  std::vector<std::string> lines;
  for (int rank = 0; rank < 8; ++rank)
    lines.push_back(
        fmt::format(R"({{"op": "collective", "kind": "all_gather", "rank": {}, "bytes": {}{}}})",
                    rank, std::int64_t{1} << 61, many));
  CHECK_THAT(error_of(lines), Catch::StartsWith("t.jsonl:2: "));
}

TEST_CASE("messages meet within their communicator, and two of them are told together") {
  auto end = [](const char* op, int rank, int peer, const std::string& more) {
    return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": 8{}}})", op, rank, peer,
                       more);
  };
  const std::string tp = R"(, "comm": "tp")", pair = R"(, "comm": "pair")";
  CHECK(findings_of({end("send", 0, 1, tp), end("send", 0, 1, pair), end("recv", 1, 0, pair),
                     end("recv", 1, 0, tp)})
            .empty());
  CHECK(finding_of({end("send", 0, 1, tp), end("recv", 1, 0, pair)}) ==
        "t.jsonl:2: send from rank 0 to rank 1 (tag 0) on communicator 'tp' never meets the recv "
        "on communicator 'pair' in line 3");
  CHECK(finding_of({end("isend", 0, 1, R"(, "dtype": "f32")"),
                    end("irecv", 1, 0, R"(, "dtype": "i32")")}) ==
        "t.jsonl:2: send of f32 from rank 0 to rank 1 (tag 0) meets the recv of i32 in line 3");
}

TEST_CASE("a message that is left out in the midst of others is the one that is named") {
  auto end = [](const char* op, int bytes) {
    return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": {}}})", op,
                       op[0] == 's' ? 0 : 1, op[0] == 's' ? 1 : 0, bytes);
  };
  CHECK(finding_of(
            {end("send", 1), end("send", 2), end("send", 3), end("recv", 1), end("recv", 3)}) ==
        "t.jsonl:3: send from rank 0 to rank 1 (tag 0) has no recv");
  CHECK(finding_of(
            {end("send", 1), end("send", 3), end("recv", 1), end("recv", 2), end("recv", 3)}) ==
        "t.jsonl:5: recv on rank 1 from rank 0 (tag 0) has no send");
}

TEST_CASE("fields of communicators, batches and calls are checked") {
  auto header_error = [](const std::string& fields) {
    try {
      trace_of("{\"reshard_trace\": 1, " + fields + "}", {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(
      header_error(R"("comms": ["a"])") ==
      "t.jsonl:1: comms: expected an object of ranks such as {\"tp\": \"0-7\"}, found a list of 1");
  CHECK_THAT(header_error(R"("comms": {"a": "x"})"), Catch::StartsWith("t.jsonl:1: a: "));
  CHECK(header_error(R"("launch_order_implicit": 1)") ==
        "t.jsonl:1: launch_order_implicit: expected true or false, found 1");
  CHECK(header_error(R"("launch_order_implicit": true)") == "no error");
  CHECK_THAT(error_of({call(0, 8, R"(, "comm": "")")}),
             Catch::StartsWith("t.jsonl:2: comm: expected the name of a communicator"));
  auto batched = [](const char* op, int rank, int peer, const std::string& more) {
    return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": 8{}}})", op, rank, peer,
                       more);
  };
  const std::string a = R"(, "batch": "a")";
  CHECK(error_of({batched("send", 0, 1, a), batched("recv", 0, 1, a), batched("send", 1, 0, a),
                  batched("recv", 1, 0, a)}) == "no error");
  CHECK(error_of({batched("send", 0, 1, a), batched("recv", 0, 1, ""), batched("send", 0, 1, a)}) ==
        "t.jsonl:4: batch: expected the sends and recvs of 'a' on rank 0 one after another, found "
        "others between them");
  CHECK(error_of({batched("send", 0, 1, a), R"({"op": "compute", "ranks": "0", "duration_ps": 1})",
                  batched("send", 0, 1, a)}) ==
        "t.jsonl:4: batch: expected the sends and recvs of 'a' on rank 0 one after another, found "
        "others between them");
  CHECK(error_of({batched("send", 0, 1, a), batched("send", 0, 1, a + R"(, "stream": 1)")}) ==
        "t.jsonl:3: batch: expected one stream and one communicator in 'a' on rank 0, found "
        "another");
  CHECK(error_of({call(0, 8, R"(, "comm": "tp", "batch": "a")")}) ==
        "t.jsonl:2: batch: expected it only for a send or a recv, found it elsewhere");
}

TEST_CASE("many lines are cut short") {
  std::vector<std::string> lines;
  for (int rank = 0; rank < 9; ++rank) lines.push_back(call(rank, 8, R"(, "ranks": "0-9")"));
  CHECK(finding_of(lines) ==
        "t.jsonl:2: rank 9 never reaches the all_reduce of 8 bytes on communicator [0-9]: ranks "
        "0-8 wait for it in lines 2, 3, 4, 5, 6, 7, 8, 9, .. (9 in total)");
  lines.erase(lines.begin());  // eight are not many
  lines.push_back(call(9, 8, R"(, "ranks": "0-9")"));
  lines.erase(lines.begin());
  CHECK(findings_of(lines).size() == 2);
}

TEST_CASE("a finding lists its ranks and lines in order") {
  auto finding = [](const std::vector<std::string>& lines) {
    Trace trace = trace_of(kCommsHeader, lines);
    REQUIRE(trace.findings.size() == 1);
    return trace.findings[0];
  };
  auto ranks = [](std::vector<std::int32_t> of) {
    std::vector<Rank> out;
    for (std::int32_t rank : of) out.push_back(Rank{rank});
    return out;
  };
  TraceFinding swapped =
      finding({call(0, 8), call(0, 16), call(1, 16), call(1, 8), call(2, 8), call(2, 16)});
  CHECK(swapped.lines == std::vector<std::int64_t>{2, 3, 4, 5, 6, 7});
  CHECK(swapped.ranks == ranks({1}));
  CHECK(finding({R"({"op": "recv", "rank": 1, "peer": 0, "bytes": 8})"}).ranks == ranks({0, 1}));
  // Of two nobody can say which is right.
  const std::string pair = R"(, "comm": "pair")";
  CHECK(finding({call(0, 8, pair), call(1, 9, pair)}).ranks == ranks({0, 1}));
  CHECK(finding({call(0, 8), call(1, 8, R"(, "comm": "tp", "transport": "ideal")"),
                 call(2, 8, R"(, "comm": "tp", "transport": "nccl")")})
            .ranks == ranks({2}));
}

TEST_CASE("ends of two communicators meet in their order, and only where they are alike") {
  auto end = [](const char* op, const std::string& more, int bytes = 8) {
    return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": {}{}}})", op,
                       op[0] == 's' ? 0 : 1, op[0] == 's' ? 1 : 0, bytes, more);
  };
  const std::string tp = R"(, "comm": "tp")", pair = R"(, "comm": "pair")";
  const std::string start =
      "send from rank 0 to rank 1 (tag 0) on communicator 'tp' never meets the recv on "
      "communicator 'pair' in line ";
  CHECK(findings_of({end("send", tp), end("send", tp), end("recv", pair), end("recv", pair)}) ==
        std::vector<std::string>{"t.jsonl:2: " + start + "4", "t.jsonl:3: " + start + "5"});
  CHECK(findings_of({end("send", tp), end("recv", pair, 16)}) ==
        std::vector<std::string>{"t.jsonl:2: send from rank 0 to rank 1 (tag 0) has no recv",
                                 "t.jsonl:3: recv on rank 1 from rank 0 (tag 0) has no send"});
  // Of three of one size the type says which is left out.
  const std::string f32 = R"(, "dtype": "f32")", bf16 = R"(, "dtype": "bf16")";
  CHECK(findings_of({end("send", f32), end("send", bf16), end("send", f32), end("recv", f32),
                     end("recv", f32)}) ==
        std::vector<std::string>{"t.jsonl:3: send from rank 0 to rank 1 (tag 0) has no recv"});
}

TEST_CASE("calls by different algorithms do not meet, nor do those that name other ranks") {
  const std::string tree = R"(, "comm": "tp", "algorithm": "tree")";
  CHECK(finding_of({call(0, 8), call(1, 8, tree), call(2, 8)}) ==
        "t.jsonl:3: rank 1 calls all_reduce of 8 bytes (tree) in line 3, but ranks 0,2 call "
        "all_reduce of 8 bytes on communicator 'tp' in lines 2, 4");
  CHECK(finding_of({call(0, 8), call(1, 8, R"(, "comm": "tp", "ranks": "0-1")"), call(2, 8)}) ==
        "t.jsonl:3: all_reduce on ranks 0-1 uses communicator 'tp', which has ranks 0-2");
}
