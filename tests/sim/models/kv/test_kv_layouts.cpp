// SPDX-License-Identifier: BSD-3-Clause
// What ranks have of a cache, against the slow definition of kv_case.h; and that such transfers
// move every byte.
#include <catch2/catch.hpp>

#include <sstream>

#include "core/planners/planner.h"
#include "sim/job/job.h"
#include "sim/job/job_file.h"
#include "tests/sim/models/kv/kv_case.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

Subject subject_of(const KvSpec& spec) {
  std::istringstream lines(kv_layouts(read_kv_transfer(spec)));
  return parse_job(lines, "cache");
}

KvNumbers numbers_of(const Stored& side) {
  KvNumbers out;
  ElementNumbers numbers = element_numbers(side);
  for (std::size_t b = 0; b < numbers.size(); ++b) {
    const StoredBuffer& buffer = side.buffers()[id_of<StoredBufferId>(b)];
    out[{to_int(buffer.rank), std::string(buffer.name)}] = numbers[b];
  }
  return out;
}

std::string line_of(const std::string& text, const std::string& start) {
  std::size_t at = text.find(start);
  return at == std::string::npos ? "no such line" : text.substr(at, text.find('\n', at) - at);
}

KvSpec small_spec() {
  KvSpec out;
  out.config_file = "config.json";
  out.config = R"({"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                   "head_dim": 8, "dtype": "bfloat16"})";
  out.tokens = 40;
  out.from = {"tp=2", "", "", 16, 0};
  out.to = {"tp=4 pp=2", "", "", 32, 0};
  return out;
}

}  // namespace

TEST_CASE("every element of drawn caches is where the slow definition has it") {
  constexpr int kCases = 4000;
  for (int seed = 0; seed < kCases; seed += kOneOf) {
    Prng prng(static_cast<std::uint64_t>(seed));
    KvCase drawn = draw_kv_case(prng);
    INFO("seed " << seed);
    Subject subject = subject_of(drawn.spec());
    REQUIRE(numbers_of(*subject.layouts->source) == slow_numbers(drawn, drawn.from));
    REQUIRE(numbers_of(*subject.layouts->destination) == slow_numbers(drawn, drawn.to));
  }
}

TEST_CASE("drawn caches arrive whole") {
  constexpr int kCases = 120;
  for (int seed = 0; seed < kCases; seed += kOneOf) {
    Prng prng(static_cast<std::uint64_t>(seed) + 10'000);
    KvCase drawn = draw_kv_case(prng);
    INFO("seed " << seed);
    Subject subject = subject_of(drawn.spec());
    Job job(subject, topology_for("", subject.highest_rank()), find_planner("p2p", "planner"), {});
    DataReport data = job.moved(std::int64_t{1} << 30);
    REQUIRE(data.checked);
    REQUIRE(data.full_size);
  }
}

TEST_CASE("consecutive blocks are one part") {
  std::string text = kv_layouts(read_kv_transfer(small_spec()));
  CHECK(line_of(text, R"({"tensor": "layers.1.v")") ==
        R"({"tensor": "layers.1.v", "shape": [40, 2, 8], "dtype": "bf16"})");
  CHECK(line_of(text, R"({"side": "from", "buffer": "layers.0.kv", "ranks": "1")") ==
        R"({"side": "from", "buffer": "layers.0.kv", "ranks": "1", "shape": [2,3,16,1,8], )"
        R"("dtype": "bf16", "parts": [{"tensor": "layers.0.k", "box": "0:40,1:2,:", "offset": 0}, )"
        R"({"tensor": "layers.0.v", "box": "0:40,1:2,:", "offset": 384}]})");
  // Ranks with the same head share a line; the decode ranks come after those of prefill.
  CHECK(line_of(text, R"({"side": "to", "buffer": "layers.1.kv", "ranks": "8-9")") ==
        R"({"side": "to", "buffer": "layers.1.kv", "ranks": "8-9", "shape": [2,2,32,1,8], )"
        R"("dtype": "bf16", "parts": [{"tensor": "layers.1.k", "box": "0:40,1:2,:", "offset": 0}, )"
        R"({"tensor": "layers.1.v", "box": "0:40,1:2,:", "offset": 512}]})");
}
