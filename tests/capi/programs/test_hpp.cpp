// SPDX-License-Identifier: BSD-3-Clause
// reshard.hpp in a C++17 program: every query, runs with one call and with an exchange of the
// caller's, and errors as exceptions. Includes only the installed headers.
#include <catch2/catch.hpp>
#include <reshard/reshard.hpp>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <list>
#include <numeric>

using Catch::Matchers::Contains;
using Ints = std::vector<std::int32_t>;

namespace {

// i32[4,4] S(0) -> S(1) on two ranks: each keeps 2 x 2 and sends 2 x 2.
reshard::Plan rows_to_columns() {
  return reshard::Plan(reshard::Request("2", "4,4", "S(0)", "S(1)", "i32"), {"p2p"});
}
const std::vector<Ints> kRows{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
const std::vector<Ints> kColumns{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}};

}  // namespace

TEST_CASE("what a plan is and costs") {
  reshard::Plan plan = rows_to_columns();
  reshard_plan_facts facts = plan.facts();
  CHECK(facts.rank_count == 2);
  CHECK(facts.peak_bytes_max == 64);
  CHECK(facts.received_bytes_total == 32);
  CHECK(plan.planner() == "p2p");
  CHECK(plan.request() == "i32[4,4] S(0) on 2 -> S(1)");
  CHECK(plan.ranks() == Ints{0, 1});
  CHECK(plan.rank_bytes(1).received_bytes == 16);
  CHECK(plan.rank_bytes(1).peak_bytes == 64);
  reshard_buffer columns = plan.buffer(1, 1);
  CHECK(columns.bytes == 32);
  CHECK(columns.shape[0] == 4);
  CHECK(columns.shape[1] == 2);
  CHECK(plan.times().time_ps >= plan.times().bound_ps);
  CHECK(plan.times(reshard::Topology("dgx-h100")).time_ps == plan.times().time_ps);
  CHECK(plan.times(reshard::Topology("pcie-8x3090")).time_ps > plan.times().time_ps);
  plan.prove();
  CHECK(reshard::version() == reshard_version());
}

TEST_CASE("every text of a request counts") {
  reshard::RequestTexts texts{"2", "6", "S(0)", "R"};
  texts.dtype = "bf16";
  texts.ranks = "1,2";
  texts.to_mesh = "3";
  texts.to_ranks = "5-7";
  reshard::Plan plan{reshard::Request(texts)};
  CHECK(plan.ranks() == Ints{1, 2, 5, 6, 7});
  CHECK(plan.rank_bytes(2).source_bytes == 6);
  CHECK(plan.rank_bytes(7).destination_bytes == 12);
  CHECK(reshard::Plan(reshard::Request("2", "", "R", "R")).rank_bytes(0).source_bytes == 4);
}

TEST_CASE("a topology and options are asked for") {
  reshard::Request request("8", "1048576", "S(0)", "R");
  reshard::Topology parsed = reshard::Topology::parse(
      reshard::command({"topo", "show", "dgx-a100", "--emit", "topology"}), 2);
  CHECK(reshard::Plan(request).times(parsed).time_ps ==
        reshard::Plan(request).times(reshard::Topology("dgx-a100:2")).time_ps);
  CHECK(reshard::Plan(request, {"graph"}, parsed).planner() == "graph");
  CHECK_THROWS_AS(reshard::Plan(request, {"auto", 1000}), reshard::InputError);
  reshard::Request sums("4", "64,64", "P(sum)", "S(0)");
  for (std::int64_t extra : {0, 12287})
    CHECK_THROWS_WITH(reshard::Plan(sums, {"p2p", 0, extra}),
                      Contains("extra memory: expected at least 12288 bytes per rank") &&
                          Contains("found " + std::to_string(extra)));
  CHECK(reshard::Plan(sums, {"p2p", 0, 12288}).text() == reshard::Plan(sums, {"p2p"}).text());
  CHECK_THROWS_WITH(reshard::Plan(sums, {"p2p", 0, -1}), Contains("extra_memory_bytes"));
  CHECK_THAT(reshard::Plan(sums, {"p2p", 0, {}, true}).text(), Contains("sources freed"));
  CHECK_THROWS_WITH(reshard::Topology::parse("nonsense"), Contains("text:1"));
  CHECK_THROWS_WITH(reshard::Topology::parse("nonsense", -4), Contains("count"));
}

TEST_CASE("a plan is its text, and several are one") {
  reshard::Plan plan = rows_to_columns(), again = reshard::Plan::parse(plan.text());
  CHECK(again.text() == plan.text());
  reshard::Plan both = reshard::Plan::join({plan, again});
  CHECK(both.facts().tensor_count == 2);
  CHECK(both.facts().received_bytes_total == 64);
  std::vector<Ints> out(4, Ints(8));
  reshard::execute_all(
      both, {{kRows[0], out[0]}, {kRows[0], out[1]}, {kRows[1], out[2]}, {kRows[1], out[3]}});
  CHECK(out == std::vector<Ints>{kColumns[0], kColumns[0], kColumns[1], kColumns[1]});
  CHECK_THROWS_AS(reshard::Plan::parse("reshard-plan 9\n"), reshard::InputError);
}

TEST_CASE("a job is planned as one, from requests or from a file") {
  reshard::RequestTexts sums{"2", "4", "P(sum)", "S(0)"};
  sums.name = "sums";
  reshard::Plan job = reshard::Plan::job(
      {reshard::Request("2", "4,4", "S(0)", "S(1)", "i32"), reshard::Request(sums)}, {"p2p"});
  std::vector<reshard_tensor> tensors = job.tensors();
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == std::string());
  CHECK(tensors[0].dims == 2);
  CHECK(tensors[0].shape[1] == 4);
  CHECK(tensors[1].name == std::string("sums"));
  CHECK(tensors[1].dtype == std::string("f32"));
  CHECK(tensors[1].request == std::string("f32[4] P(sum) on 2 -> S(0)"));
  // One message from a rank to the other, for both tensors.
  CHECK(reshard::Program(job, 0).messages(1).size() == 2);
  std::vector<Ints> columns(2, Ints(8));
  std::vector<std::vector<float>> addends{{1, 2, 3, 4}, {10, 20, 30, 40}}, out(2, {0, 0});
  reshard::execute_all(
      job,
      {{kRows[0], columns[0]}, {addends[0], out[0]}, {kRows[1], columns[1]}, {addends[1], out[1]}});
  CHECK(columns == kColumns);
  CHECK(out == std::vector<std::vector<float>>{{11, 22}, {33, 44}});
  std::string path = "/tmp/reshard_hpp_job_" + std::to_string(getpid()) + ".jsonl";
  std::ofstream(path) << R"x({"shape": [4, 4], "dtype": "i32", "from": "S(0)", "to": "S(1)",)x"
                      << R"x( "mesh": "2"}
{"name": "sums", "shape": [4], "dtype": "f32", "from": "P(sum)", "to": "S(0)", "mesh": "2"})x";
  CHECK(reshard::Plan::job_from_file(path, {"p2p"}).text() == job.text());
  reshard::Topology machine("pcie-8x3090");
  for (const reshard::Plan& there :
       {reshard::Plan::job_from_file(path, {}, machine),
        reshard::Plan::job({reshard::Request(sums), reshard::Request(sums)}, {}, machine)})
    CHECK_THAT(there.report("table"), Contains("topology  pcie-8x3090"));
  std::remove(path.c_str());
  CHECK_THROWS_WITH(reshard::Plan::job({}), "count: expected 1 or more, found 0");
  reshard::RequestTexts first = sums, second = sums;
  first.id = "first";
  second.after = {"first"};
  CHECK_THAT(reshard::Plan::job({reshard::Request(second), reshard::Request(first)}).report("json"),
             Contains("\"stages\""));
  first.after = {"last"};
  CHECK_THROWS_WITH(reshard::Plan::job({reshard::Request(first)}),
                    Contains("requests[0].after: expected the id of a request of this job, found "
                             "'last', which none has"));
}

TEST_CASE("a plan of layouts runs on the buffers of its ranks") {
  reshard::Plan plan = reshard::Plan::job_from_file("traces/checks/qkv.copies");
  std::vector<reshard_stored_buffer> to = reshard::stored_buffers(plan, reshard::Side::To);
  REQUIRE(to.size() == 2);
  CHECK(to[1].name == std::string("qkv_proj.weight"));
  std::vector<std::uint16_t> fused(48), one(24), two(24);
  for (std::size_t i = 0; i < fused.size(); ++i) fused[i] = static_cast<std::uint16_t>(i);
  const std::vector<std::uint16_t>& before = fused;
  std::vector<reshard::RankBuffers> ranks;
  ranks.emplace_back(plan, 0, std::vector<reshard::LentBuffer>{{"linear_qkv.weight", before}},
                     std::vector<reshard::LentBuffer>{});
  for (int rank : {1, 2})
    ranks.emplace_back(
        plan, rank, std::vector<reshard::LentBuffer>{},
        std::vector<reshard::LentBuffer>{{"qkv_proj.weight", rank == 1 ? one : two}});
  std::vector<reshard::Shards> shards;
  for (const reshard::RankBuffers& mine : ranks) {
    mine.gather();
    for (const reshard::Shards& each : mine.shards()) shards.push_back(each);
  }
  CHECK(ranks[0].staged_bytes() == 96);
  reshard::execute_all(plan, shards);
  for (const reshard::RankBuffers& mine : ranks) mine.scatter();
  CHECK(one == std::vector<std::uint16_t>(fused.begin(), fused.begin() + 24));
  CHECK(two == std::vector<std::uint16_t>(fused.begin() + 24, fused.end()));
  CHECK_THROWS_WITH(reshard::RankBuffers(plan, 1, {}, {}), Contains("expected the buffer"));
}

TEST_CASE("a model's layouts are planned") {
  reshard::ModelTransfer model;
  model.config = R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8,
    "vocab_size": 40, "num_attention_heads": 4, "intermediate_size": 16,
    "torch_dtype": "bfloat16"})";
  model.from = "megatron tp=2";
  model.to = "vllm tp=4";
  model.to_ranks = "2-5";
  reshard::ModelLayouts layouts = reshard::layouts_of(model);
  CHECK(layouts.notes.empty());
  reshard::Plan plan = reshard::Plan::job_from_text(layouts.text, {"p2p"});
  CHECK(plan.ranks().size() == 6);
  CHECK_FALSE(reshard::stored_buffers(plan, reshard::Side::To).empty());
  CHECK(
      reshard::Plan::job_from_text(layouts.text, {"p2p"}, reshard::Topology("dgx-h100:1")).text() ==
      plan.text());
  model.to = "vllm tp=3";
  CHECK_THROWS_WITH(reshard::layouts_of(model), Contains("to_ranks: expected 3 ranks"));
}

TEST_CASE("what one rank does") {
  reshard::Program program(rows_to_columns(), 1);
  CHECK(program.facts().rank == 1);
  CHECK(program.buffer(1).bytes == 32);
  std::vector<reshard_operation> operations = program.operations();
  REQUIRE(operations.size() == 2);
  CHECK(operations[0].kind == RESHARD_COPY);
  CHECK(operations[1].kind == RESHARD_EXCHANGE);
  CHECK(reshard::after(operations[1]).empty());
  std::vector<reshard_move> kept = program.moves(0);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].source_offset[1] == 2);
  CHECK(kept[0].destination_offset[0] == 2);
  std::vector<reshard_message> messages = program.messages(1);
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].receives == 0);
  CHECK(messages[1].receives == 1);
  std::vector<reshard_move> received = program.moves(1, 1);
  REQUIRE(received.size() == 1);
  CHECK(received[0].source_offset[1] == 2);
  CHECK(received[0].destination_offset[0] == 0);
  CHECK_THROWS_WITH(program.messages(0), Contains("expected an exchange, found copy"));
  CHECK_THROWS_WITH(program.operation(2), Contains("operation"));
}

TEST_CASE("fills, folds and groups") {
  reshard::Program uneven(reshard::Plan(reshard::Request("2", "5", "S(0)", "R"), {"rule"}), 1);
  bool filled = false;
  for (std::int32_t i = 0; i < uneven.facts().operation_count; ++i) {
    reshard_operation operation = uneven.operation(i);
    if (operation.kind == RESHARD_FILL) {
      filled = true;
      CHECK(uneven.boxes(i).at(0).extents[0] == 1);
    }
    if (operation.kind != RESHARD_ALL_GATHER) continue;
    reshard::View<const std::int32_t> group = reshard::group(operation);
    CHECK(Ints(group.begin(), group.end()) == Ints{0, 1});
    CHECK_FALSE(reshard::after(operation).empty());
  }
  CHECK(filled);
  reshard::Program sum(reshard::Plan(reshard::Request("2", "4", "P(sum)", "S(0)"), {"p2p"}), 0);
  std::int32_t last = sum.facts().operation_count - 1;
  REQUIRE(sum.operation(last).kind == RESHARD_REDUCE);
  std::vector<reshard_box> folds = sum.boxes(last);
  REQUIRE(folds.size() == 1);
  CHECK(folds[0].buffer == 1);
  std::vector<reshard_box> operands = sum.operands(last, 0);
  REQUIRE(operands.size() == 2);
  CHECK(operands[0].buffer == 0);
  CHECK(operands[1].buffer == 2);
}

TEST_CASE("all ranks in this process") {
  CHECK(reshard::redistribute(rows_to_columns(), kRows) == kColumns);
  // Onto other ranks: who has no shard has an empty one.
  reshard::RequestTexts texts{"2", "4", "P(sum)", "S(0)"};
  texts.to_ranks = "2-3";
  reshard::Plan apart{reshard::Request(texts)};
  std::vector<std::vector<float>> addends{{1, 2, 3, 4}, {10, 20, 30, 40}, {}, {}};
  CHECK(reshard::redistribute(apart, addends) ==
        std::vector<std::vector<float>>{{}, {}, {11, 22}, {33, 44}});
}

TEST_CASE("shards that do not fit are refused with what was expected") {
  reshard::Plan plan = rows_to_columns();
  CHECK_THROWS_WITH(reshard::redistribute(plan, std::vector<Ints>{kRows[0]}),
                    "shards, one per rank: expected 2, found 1");
  CHECK_THROWS_WITH(reshard::redistribute(plan, std::vector<Ints>{kRows[0], {1}}),
                    Contains("source_bytes of rank 1: expected 32"));
  CHECK_THROWS_WITH(reshard::redistribute(plan, std::vector<std::vector<char>>(2)),
                    "bytes of an element: expected 4, found 1");
  CHECK_THROWS_WITH(reshard::redistribute(reshard::Plan::join({plan, plan}), kRows),
                    "tensors: expected 1, found 2");
  CHECK_THROWS_WITH(reshard::execute_all(plan, {}), Contains("count: expected 2"));
  reshard::Program program(plan, 0);
  auto none = [](auto&&, auto&&) {};
  CHECK_THROWS_WITH(reshard::execute(program, {}, none), "shards: expected 1, found 0");
  CHECK_THROWS_WITH(reshard::execute(program, {{kRows[0], Ints()}}, none),
                    Contains("destination_bytes: expected 32"));
}

TEST_CASE("one rank over an exchange of the caller's") {
  reshard::Program program(rows_to_columns(), 0);
  std::array<std::int32_t, 8> destination{};
  Ints sent(4);
  auto exchange = [&](reshard::View<const reshard_transfer> sends,
                      reshard::View<const reshard_transfer> receives) {
    REQUIRE(sends.size() == 1);
    REQUIRE(receives.size() == 1);
    CHECK(sends[0].tag == receives[0].tag);
    std::memcpy(sent.data(), sends[0].data, 16);
    const Ints theirs{8, 9, 12, 13};
    std::memcpy(receives[0].data, theirs.data(), 16);
  };
  reshard::execute(program, {{kRows[0], destination}}, exchange);
  CHECK(sent == Ints{2, 3, 6, 7});
  CHECK(Ints(destination.begin(), destination.end()) == kColumns[0]);
  // What it throws comes out as it is.
  auto fails = [](auto&&, auto&&) { throw std::out_of_range("the line is cut"); };
  CHECK_THROWS_AS(reshard::execute(program, {{kRows[0], destination}}, fails), std::out_of_range);
}

TEST_CASE("temporaries of a rank lie in the caller's arena") {
  // f32[4] P(sum) -> S(0): what the other rank has of this one's half is folded from a temporary.
  reshard::Program program(reshard::Plan(reshard::Request("2", "4", "P(sum)", "S(0)"), {"p2p"}), 0);
  const std::vector<float> addends{1, 2, 3, 4};
  std::vector<float> sums(2);
  std::vector<std::byte> arena(static_cast<std::size_t>(program.facts().arena_bytes));
  REQUIRE(arena.size() >= 8);
  auto exchange = [](reshard::View<const reshard_transfer>,
                     reshard::View<const reshard_transfer> receives) {
    const std::array<float, 2> theirs{10, 20};
    std::memcpy(receives[0].data, theirs.data(), 8);
  };
  reshard::execute(program, {{addends, sums}}, exchange, arena);
  CHECK(sums == std::vector<float>{11, 22});
  float received = 0;
  std::memcpy(&received, arena.data() + program.buffer(2).arena_offset, sizeof received);
  CHECK(received == 10);
  CHECK_THROWS_WITH(reshard::execute(program, {{addends, sums}}, exchange,
                                     reshard::View<std::byte>(arena.data(), 7)),
                    Contains("arena_bytes: expected at least"));
}

TEST_CASE("codes are exceptions of one family, with the library's sentence") {
  try {
    reshard::Request("2", "4", "S(7)", "R");
    FAIL("S(7) of one dim was taken");
  } catch (const reshard::Error& error) {
    CHECK(dynamic_cast<const reshard::InputError*>(&error) != nullptr);
    CHECK(error.what() == std::string(reshard_last_error()));
  }
  CHECK_THROWS_AS(reshard::detail::check(RESHARD_BACKEND_ERROR), reshard::BackendError);
  CHECK_THROWS_AS(reshard::detail::check(RESHARD_CHECK_FAILURE), reshard::CheckFailure);
  // What was moved from has no handle, and says so.
  reshard::Plan plan = rows_to_columns(), taken = std::move(plan);
  CHECK_THROWS_WITH(plan.facts(), Contains("plan: expected a pointer, found NULL"));
  CHECK(taken.facts().rank_count == 2);
}

TEST_CASE("a command's text, and its findings") {
  CHECK_THAT(reshard::command({"plan", "--mesh", "2", "--shape", "4,4", "--from", "S(0)", "--to",
                               "S(1)", "--json"}),
             Contains("\"schema\""));
  CHECK_THROWS_AS(reshard::command({"plan"}), reshard::InputError);
  std::string trace = "/tmp/reshard_hpp_unmatched_" + std::to_string(getpid()) + ".jsonl";
  std::ofstream(trace) << "{\"reshard_trace\": 1}\n{\"op\": \"send\", \"rank\": 0, "
                          "\"peer\": 1, \"bytes\": 8}\n";
  try {
    reshard::command({"replay", trace});
    FAIL("a send without a receive was taken");
  } catch (const reshard::Findings& findings) {
    CHECK_THAT(findings.what(), Contains(trace) && Contains("has no recv"));
  }
  std::remove(trace.c_str());
  CHECK_THROWS_AS(reshard::command({}), reshard::InputError);
}

TEST_CASE("a view is of any contiguous container, and of no other") {
  using reshard::View;
  Ints numbers{1, 2, 3};
  const Ints fixed{4, 5};
  int plain[] = {6, 7, 8, 9};
  CHECK(View<std::int32_t>(numbers).size() == 3);
  CHECK(View<const std::int32_t>(numbers)[2] == 3);
  CHECK(View<const std::int32_t>(fixed).data() == fixed.data());
  View<const int> of_array = plain;
  CHECK(std::accumulate(of_array.begin(), of_array.end(), 0) == 30);
  CHECK(View<int>().empty());
  struct Base {};
  struct Derived : Base {
    int more;
  };
  static_assert(!std::is_constructible_v<View<std::int32_t>, const Ints&>, "drops const");
  static_assert(!std::is_constructible_v<View<Base>, std::vector<Derived>&>, "another stride");
  static_assert(!std::is_constructible_v<View<const int>, std::list<int>&>, "not contiguous");
}
