// SPDX-License-Identifier: BSD-3-Clause
// The files of NVIDIA's M2N benchmark: a small model line by line, drawn ones against what each
// rank has by its coordinates, and refusals.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/models/files/m2n.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"
#include "tests/support/weights_files.h"

namespace reshard::sim::m2n_tests {

using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;

namespace {

ForeignLayouts layouts_of(const std::string& model, const std::string& system) {
  return parse_m2n(model, "m.json", system, "s.json");
}

const std::string kSystem =
    R"({"_comment": "x", "train": {"num_gpus": 8, "tp_size": 2, "pp_size": 2, "ep_size": 4},)"
    R"( "generation": {"num_gpus": 4, "tp_size": 4, "fsdp_size": 1}})";

const std::string kModel =
    R"({"model.embed_tokens.weight": {"shape": [16, 4], "dtype": "BF16", "shard": "x"},)"
    R"( "lm_head.weight": {"shape": [16, 4]}, "model.norm.weight": {"shape": [4]},)"
    R"( "model.layers.0.self_attn.q_proj.weight": {"shape": [8, 4], "dtype": "F32"},)"
    R"( "model.layers.1.self_attn.o_proj.weight": {"shape": [4, 8]},)"
    R"( "model.layers.1.mlp.gate.weight": {"shape": [4, 4]},)"
    R"( "model.layers.1.mlp.experts.0.up_proj.weight": {"shape": [8, 4]},)"
    R"( "model.layers.1.mlp.experts.10.up_proj.weight": {"shape": [8, 4]},)"
    R"( "model.layers.1.mlp.experts.2.up_proj.weight": {"shape": [8, 4]},)"
    R"( "model.layers.1.mlp.experts.3.up_proj.weight": {"shape": [8, 4]}})";

void check_refused(const std::string& model, const std::string& system, const std::string& what) {
  CAPTURE(what);
  CHECK_THROWS_WITH(layouts_of(model, system), Contains(".json: ") && Contains(what));
  CHECK_THROWS_AS(layouts_of(model, system), InputError);
}
void check_system(const std::string& train, const std::string& generation,
                  const std::string& what) {
  check_refused(kModel, fmt::format(R"({{"train": {}, "generation": {}}})", train, generation),
                what);
}

ModelLayouts sides_of(const std::string& lines) {
  std::istringstream in(lines);
  LineReader reader(in, "made");
  return read_sides(reader, "made");
}

// ---- drawn

struct Sizes {
  std::int64_t tp, cp, ep, dp, pp;
  std::int64_t gpus = 0;
};

Sizes draw_sizes(test::Prng& prng) {
  Sizes out{};
  for (std::int64_t* size : {&out.tp, &out.cp, &out.ep, &out.dp, &out.pp})
    *size = prng.pick(std::vector<std::int64_t>{1, 1, 1, 2, 2, 3});
  return out;
}

Json json_of(const Sizes& sizes) {
  return {{"num_gpus", sizes.gpus}, {"tp_size", sizes.tp}, {"cp_size", sizes.cp},
          {"ep_size", sizes.ep},    {"dp_size", sizes.dp}, {"pp_size", sizes.pp}};
}

// How a tensor of the drawn model is cut: along which dim by tp, and that dim of experts alone.
struct Kind {
  std::string name;  // behind "model.layers.<n>." or whole
  std::vector<std::int64_t> shape;
  int cut;  // -1: whole
  bool is_expert = false;
};
const std::vector<Kind> kOfLayer{{"self_attn.q_proj.weight", {12, 4}, 0},
                                 {"self_attn.kv_b_proj.weight", {24, 4}, 0},
                                 {"self_attn.o_proj.weight", {4, 12}, 1},
                                 {"self_attn.q_proj.bias", {12}, -1},
                                 {"mlp.gate.weight", {6, 4}, -1},
                                 {"mlp.gate.e_score_correction_bias", {6}, -1},
                                 {"mlp.shared_experts.down_proj.weight", {4, 36}, 1},
                                 {"input_layernorm.weight", {4}, -1},
                                 {"mlp.experts.#.up_proj.weight", {12, 4}, 0, true},
                                 {"mlp.experts.#.down_proj.weight", {4, 12}, 1, true},
                                 {"mlp.experts.#.bias", {5}, -1, true}};

// What a rank has of each tensor, by its name.
using Held = std::map<std::string, Box>;

struct Drawn {
  std::int64_t layers, experts;
  Sizes train, generation;

  // By the coordinates of a rank in the grids of its stage.
  Held held(std::int64_t rank) const {
    const bool is_trainer = rank < train.gpus;
    const Sizes& sizes = is_trainer ? train : generation;
    if (!is_trainer) rank -= train.gpus;
    const std::int64_t stage_size = sizes.gpus / sizes.pp, stage = rank / stage_size,
                       local = rank % stage_size;
    // Trainers number experts' ranks by themselves; generators have ep outside of cp and tp.
    const std::int64_t tp = local % sizes.tp,
                       ep = (is_trainer ? local : local / (sizes.tp * sizes.cp)) % sizes.ep;
    Held out;
    auto put = [&](const std::string& name, std::vector<std::int64_t> shape, int dim,
                   std::int64_t parts, std::int64_t part) {
      Box box;
      for (std::int64_t extent : shape) {
        box.lo.push_back(0);
        box.hi.push_back(extent);
      }
      if (dim >= 0) {
        const std::int64_t each = shape[static_cast<std::size_t>(dim)] / parts;
        box.lo[dim] = part * each;
        box.hi[dim] = (part + 1) * each;
      }
      out[name] = box;
    };
    if (stage == 0) put("model.embed_tokens.weight", {12, 4}, 0, sizes.tp, tp);
    if (stage == sizes.pp - 1) {
      put("lm_head.weight", {12, 4}, 0, sizes.tp, tp);
      put("model.norm.weight", {4}, -1, 1, 0);
    }
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      if (layer * sizes.pp / layers != stage) continue;
      for (const Kind& kind : kOfLayer) {
        std::string name = fmt::format("model.layers.{}.{}", layer, kind.name);
        if (!kind.is_expert) {
          put(name, kind.shape, kind.cut, sizes.tp, tp);
          continue;
        }
        name.erase(name.find("#."), 2);
        std::vector<std::int64_t> shape{experts};
        shape.insert(shape.end(), kind.shape.begin(), kind.shape.end());
        if (sizes.ep > 1)
          put(name, shape, 0, sizes.ep, ep);
        else if (is_trainer || kind.cut < 0)
          put(name, shape, -1, 1, 0);
        else
          put(name, shape, kind.cut + 1, sizes.tp, tp);
      }
    }
    return out;
  }

  std::string model() const {
    Json out{{"model.embed_tokens.weight", {{"shape", {12, 4}}}},
             {"lm_head.weight", {{"shape", {12, 4}}, {"dtype", "F32"}}},
             {"model.norm.weight", {{"shape", Json::array({4})}}}};
    for (std::int64_t layer = 0; layer < layers; ++layer)
      for (const Kind& kind : kOfLayer) {
        const std::string name = fmt::format("model.layers.{}.{}", layer, kind.name);
        if (!kind.is_expert) {
          out[name] = {{"shape", kind.shape}, {"dtype", "BF16"}};
          continue;
        }
        for (std::int64_t e = 0; e < experts; ++e) {
          std::string of_one = name;
          of_one.replace(of_one.find('#'), 1, fmt::to_string(e));
          out[of_one] = {{"shape", kind.shape}, {"dtype", "BF16"}};
        }
      }
    return out.dump();
  }
};

Drawn draw(test::Prng& prng) {
  Drawn out{prng.between(1, 4), 6 * prng.between(1, 2), draw_sizes(prng), draw_sizes(prng)};
  // Trainers: dp_size says nothing, the stage is what both grids divide.
  const std::int64_t dense = out.train.tp * out.train.cp;
  out.train.gpus = dense * out.train.ep * prng.between(1, 2) * out.train.pp;
  const Sizes& to = out.generation;
  out.generation.gpus = to.tp * to.cp * to.ep * to.dp * to.pp;
  return out;
}

// One part in a buffer of its name, row-major and without padding.
Held held_in(const Stored& side, std::int64_t rank) {
  Held out;
  for (const StoredBuffer& buffer : side.buffers()) {
    if (to_int(buffer.rank) != rank) continue;
    REQUIRE(buffer.parts.size() == 1);
    const StoredPart& part = buffer.parts[0];
    const std::string& name = side.tensors()[part.tensor].name;
    CHECK(buffer.name == name);
    CHECK(element_count(buffer.shape) == part.box.volume());
    out.emplace(name, part.box);
  }
  return out;
}

}  // namespace

TEST_CASE("a model and a system of the M2N benchmark, line by line") {
  ForeignLayouts found = layouts_of(kModel, kSystem);
  CHECK(found.end_rank == 12);
  CHECK(found.notes.empty());
  CHECK(tensor_lines(found.tensors) ==
        R"({"tensor": "lm_head.weight", "shape": [16,4], "dtype": "bf16"}
{"tensor": "model.embed_tokens.weight", "shape": [16,4], "dtype": "bf16"}
{"tensor": "model.layers.0.self_attn.q_proj.weight", "shape": [8,4], "dtype": "f32"}
{"tensor": "model.layers.1.mlp.experts.up_proj.weight", "shape": [4,8,4], "dtype": "bf16"}
{"tensor": "model.layers.1.mlp.gate.weight", "shape": [4,4], "dtype": "bf16"}
{"tensor": "model.layers.1.self_attn.o_proj.weight", "shape": [4,8], "dtype": "bf16"}
{"tensor": "model.norm.weight", "shape": [4], "dtype": "bf16"}
)");
  auto line = [](const char* side, const char* name, const char* mesh, const char* ranks,
                 const char* placements) {
    return fmt::format(R"({{"side": "{}", "tensor": "{}", "mesh": "{}", "ranks": "{}", )"
                       R"("placements": "{}"}})"
                       "\n",
                       side, name, mesh, ranks, placements);
  };
  CHECK(found.buffers ==
        line("from", "lm_head.weight", "dp=2,tp=2", "4-7", "RS(0)") +
            line("from", "model.embed_tokens.weight", "dp=2,tp=2", "0-3", "RS(0)") +
            line("from", "model.layers.0.self_attn.q_proj.weight", "dp=2,tp=2", "0-3", "RS(0)") +
            line("from", "model.layers.1.mlp.experts.up_proj.weight", "ep=4", "4-7", "S(0)") +
            line("from", "model.layers.1.mlp.gate.weight", "dp=2,tp=2", "4-7", "RR") +
            line("from", "model.layers.1.self_attn.o_proj.weight", "dp=2,tp=2", "4-7", "RS(1)") +
            line("from", "model.norm.weight", "dp=2,tp=2", "4-7", "RR") +
            line("to", "lm_head.weight", "tp=4", "8-11", "S(0)") +
            line("to", "model.embed_tokens.weight", "tp=4", "8-11", "S(0)") +
            line("to", "model.layers.0.self_attn.q_proj.weight", "tp=4", "8-11", "S(0)") +
            line("to", "model.layers.1.mlp.experts.up_proj.weight", "tp=4", "8-11", "S(1)") +
            line("to", "model.layers.1.mlp.gate.weight", "tp=4", "8-11", "R") +
            line("to", "model.layers.1.self_attn.o_proj.weight", "tp=4", "8-11", "S(1)") +
            line("to", "model.norm.weight", "tp=4", "8-11", "R"));
}

TEST_CASE("drawn models of the M2N benchmark lie on each rank by its coordinates") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 300 / test::kOneOf; ++seed) {
    CAPTURE(seed);
    test::Prng prng(seed);
    Drawn drawn = draw(prng);
    const std::string system =
        Json{{"train", json_of(drawn.train)}, {"generation", json_of(drawn.generation)}}.dump();
    ForeignLayouts found = layouts_of(drawn.model(), system);
    ModelLayouts sides = sides_of(layouts_text(found));
    CHECK(found.end_rank == drawn.train.gpus + drawn.generation.gpus);
    for (std::int64_t rank = 0; rank < found.end_rank; ++rank) {
      const Stored& side = rank < drawn.train.gpus ? *sides.source : *sides.destination;
      const Held expected = drawn.held(rank);
      REQUIRE(held_in(side, rank) == expected);
      compared += static_cast<int>(expected.size());
    }
  }
  CHECK(compared > 50'000 / test::kOneOf);
}

TEST_CASE("what the M2N benchmark leaves out or takes for bf16 is noted") {
  ForeignLayouts found = layouts_of(
      R"({"a.weight": {"shape": [2, 2, 2, 2]}, "b.q_proj.weight": {"shape": [9, 4]},)"
      R"( "c.weight": {"shape": [], "dtype": "F4"}, "d.weight": {"shape": [3], "dtype": "U32"},)"
      R"( "e.experts.x.up_proj.weight": {"shape": [4, 4]}, "x.experts.1.y": {"shape": [3, 3, 3]}})",
      R"({"train": {"num_gpus": 2, "tp_size": 2}, "generation": {"num_gpus": 8, "tp_size": 2,)"
      R"( "ep_size": 2, "dp_size": 2}})");
  REQUIRE(found.notes.size() == 4);
  CHECK(found.notes[0] == "2 tensors are of more than 3 dims and left out, such as 'a.weight'");
  CHECK(found.notes[1] == "1 tensor is not divisible and left out, such as 'b.q_proj.weight'");
  CHECK(found.notes[2] ==
        "2 tensors are of a dtype that the benchmark counts as bf16, such as 'c.weight'");
  CHECK_THAT(found.notes[3],
             Contains("the benchmark hands its library one in which ep is innermo"));
  REQUIRE(found.tensors.size() == 3);
  CHECK(found.tensors[1].dtype == DType::BF16);
  CHECK_THAT(found.buffers, Contains(R"("e.experts.x.up_proj.weight", "mesh": "edp=2")"));
  CHECK_THAT(found.buffers,
             Contains(R"("mesh": "dp=2,ep=2,tp=2", "ranks": "2-9", "placements": "RS(0)R")"));
}

TEST_CASE("one rank a side, and stages without layers") {
  ForeignLayouts found =
      layouts_of(R"({"layers.0.q_proj.weight": {"shape": [3, 3]}, "x": {"shape": [1]}})",
                 R"({"train": {"num_gpus": 1}, "generation": {"num_gpus": 3, "pp_size": 3}})");
  CHECK_THAT(found.buffers, Contains(R"("mesh": "1", "ranks": "0", "placements": "R")"));
  CHECK_THAT(found.buffers, Contains(R"("x", "mesh": "1", "ranks": "3", "placements": "R")"));
  CHECK(sides_of(layouts_text(found)).destination->ranks() == std::vector<Rank>{Rank{1}, Rank{3}});
}

TEST_CASE("systems of the M2N benchmark that do not fit are refused") {
  check_refused(kModel, "[]", "s.json: expected an object such as");
  check_refused(kModel, "{}", "train: expected an object with num_gpus");
  check_refused(kModel, R"({"train": {"num_gpus": 1}})", "generation: expected an object with");
  check_refused(kModel, R"({"train": 3, "generation": {}})", "train: expected an object with num_");
  check_system("{}", "{}", "s.json: train: num_gpus: expected an integer from 1");
  check_system(R"({"num_gpus": 0})", "{}", "num_gpus: expected an integer from 1 to 1048576");
  check_system(R"({"num_gpus": 4, "tp_size": 0})", "{}", "tp_size: expected an integer from 1");
  check_system(
      R"({"num_gpus": 4, "etp_size": 1})", "{}",
      "s.json: train: 'etp_size': expected a field that the benchmark reads, found an unk");
  check_system(R"({"num_gpus": 4, "pp_size": 3})", R"({"num_gpus": 1})",
               "train: num_gpus: expected a multiple of pp_size 3, found 4");
  check_system(R"({"num_gpus": 8, "pp_size": 2, "tp_size": 2, "cp_size": 3})", R"({"num_gpus": 1})",
               "expected a multiple of pp_size x tp_size x cp_size = 2 x 2 x 3, found 8");
  check_system(R"({"num_gpus": 8, "pp_size": 2, "ep_size": 3})", R"({"num_gpus": 1})",
               "train: num_gpus: expected a multiple of pp_size x ep_size = 2 x 3, found 8");
  check_system(R"({"num_gpus": 8})", R"({"num_gpus": 8, "tp_size": 4})",
               "generation: num_gpus: expected pp_size x dp_size x ep_size x cp_size x tp_size = "
               "1 x 1 x 1 x 1 x 4, found 8");
  check_system(R"({"num_gpus": 1})",
               R"({"num_gpus": 1, "tp_size": 1048576, "dp_size": 1048576, "ep_size": 1048576,)"
               R"( "cp_size": 1048576})",
               "1 x 1048576 x 1048576 x 1048576 x 1048576, found 1");
  check_system(R"({"num_gpus": 1})", R"({"num_gpus": 1048576, "tp_size": 1048576})",
               "num_gpus: expected at most 1048576 together, found 1048577");
  check_refused(kModel, R"({"trian": {}, "train": {"num_gpus": 1}, "generation": {"num_gpus": 1}})",
                "s.json: 'trian': expected a field that the benchmark reads, found an unknown one");
}

TEST_CASE("models of the M2N benchmark that are damaged are refused") {
  check_refused("[]", kSystem, "m.json: expected an object such as");
  check_refused("{}", kSystem,
                "m.json: expected at least one tensor of at most 3 dims, found none");
  check_refused(R"({"w": 1})", kSystem, "m.json: tensor 'w': expected an object with a shape");
  check_refused(R"({"w": {}})", kSystem, "m.json: tensor 'w': shape: expected a list of at most 7");
  check_refused(R"({"w": {"shape": [1,1,1,1,1,1,1,1]}})", kSystem, "expected a list of at most 7");
  check_refused(R"({"w": {"shape": [-1]}})", kSystem, "integers from 0, found -1");
  check_refused(R"({"w": {"shape": [1], "dtype": 3}})", kSystem, "dtype: expected a dtype such as");
  check_refused(R"({"w": {"shape": [4611686018427387904]}})", kSystem,
                "expected at most 2^62 byte");
  check_refused(R"({"": {"shape": [1]}})", kSystem, "in UTF-8, found an empty one");
  check_refused(R"({"layers.2147483648.w": {"shape": [1]}})", kSystem, "layers below 2^31");
  check_refused(R"({"a.experts.0.w": {"shape": [1]}, "a.experts.1.w": {"shape": [2]}})", kSystem,
                "tensor 'a.experts.1.w': expected the shape and dtype of 'a.experts.0.w', found");
  check_refused(R"({"a.experts.0.w": {"shape": [1]}, "a.experts.w": {"shape": [1]}})", kSystem,
                "tensor 'a.experts.w': expected another name than that of the experts together");
  check_refused(R"({"w": {"shape": [1]}, "w": {"shape": [1]}})", kSystem, "each field once");
  for (std::size_t size = 0; size < kModel.size(); ++size)
    CHECK_THROWS_AS(layouts_of(kModel.substr(0, size), kSystem), InputError);
  for (std::size_t size = 0; size < kSystem.size(); ++size)
    CHECK_THROWS_AS(layouts_of(kModel, kSystem.substr(0, size)), InputError);
}

TEST_CASE("the files of the M2N benchmark are read from disk") {
  test::TemporaryFolder folder;
  test::write_file(folder / "m.json", kModel);
  test::write_file(folder / "s.json", "\xef\xbb\xbf" + kSystem);
  CHECK(read_m2n(folder / "m.json", folder / "s.json").buffers ==
        layouts_of(kModel, kSystem).buffers);
  CHECK_THROWS_WITH(read_m2n(folder / "n.json", folder / "s.json"),
                    Contains("n.json: expected a model file of NVIDIA's reshard_model_bench"));
  CHECK_THROWS_WITH(read_m2n(folder / "m.json", folder.path()), Contains("found a directory"));
}

}  // namespace reshard::sim::m2n_tests
