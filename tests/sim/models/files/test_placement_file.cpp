// SPDX-License-Identifier: BSD-3-Clause
// Placement manifests of Mooncake: a recorded one, and ones changed in one place.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/models/files/placement_file.h"
#include "tests/support/weights_files.h"

namespace reshard::sim::placement_file_tests {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

// Of the plan that the adapter's page shows, recorded with Mooncake.
Json recorded(const std::string& side) {
  std::ifstream file("traces/checks/adapters/mooncake.json");
  REQUIRE(file);
  return Json::parse(file)[side + "_placement"];
}

ForeignLayouts layouts_of(const Json& manifest, const std::string& side, std::int64_t first_rank) {
  return parse_placement(manifest.dump(), "a.json", side, first_rank);
}

// What a change of the recorded source makes of it, by a JSON pointer; "(gone)": the field is gone,
// or the last entry of the list.
void check_refused(const std::string& pointer, const Json& value, const std::string& what) {
  CAPTURE(pointer, what);
  Json manifest = recorded("source");
  Json::json_pointer at(pointer);
  if (value == "(gone)" && manifest[at.parent_pointer()].is_array())
    manifest[at.parent_pointer()].erase(manifest[at.parent_pointer()].size() - 1);
  else if (value == "(gone)")
    manifest[at.parent_pointer()].erase(at.back());
  else
    manifest[at] = value;
  CHECK_THROWS_WITH(layouts_of(manifest, "from", 0), Contains("a.json: ") && Contains(what));
  CHECK_THROWS_AS(layouts_of(manifest, "from", 0), InputError);
}

// A manifest of "w" [4] f32 on participants p0, p1, ... with these coordinates along dp and tp.
struct Made {
  struct Fragment {
    int participant, offset, count;
    std::string tensor = "w";
    std::vector<std::string> aliases = {};
  };
  std::vector<std::pair<int, int>> participants;
  std::vector<Fragment> fragments;
  std::vector<std::string> tensors{"w"};
  std::string dp = "replicated";
  bool is_split = true;

  Json json() const {
    Json out{{"resource_kind", "model_weight"},
             {"resource_id", "r"},
             {"revision", "1"},
             {"weight_generation", 18446744073709551615u},
             {"placement_set_id", "s"},
             {"placement_id", "p"},
             {"tensors", Json::array()},
             {"parts", Json::array()},
             {"topology",
              {{"dp_size", 9},
               {"tp_size", 9},
               {"pp_size", 1},
               {"ep_size", 1},
               {"cp_size", 2},
               {"topology_id", "t"},
               {"participants", Json::array()}}}};
    for (const std::string& name : tensors) {
      Json axes = Json::array({{{"kind", "dp"}, {"semantics", dp}}});
      if (is_split) axes.push_back({{"kind", "tp"}, {"semantics", "split"}, {"dim", 0}});
      out["tensors"].push_back({{"tensor_id", name},
                                {"global_shape", {4}},
                                {"dtype", "float32"},
                                {"itemsize", 4},
                                {"shard_dims", {0}},
                                {"layout_fingerprint", "l"},
                                {"parallel_axes", axes},
                                {"layer_id", nullptr},
                                {"expert_id", 3}});
    }
    for (std::size_t p = 0; p < participants.size(); ++p) {
      Json rank{{"dp", participants[p].first},
                {"tp", participants[p].second},
                {"pp", 0},
                {"ep", 0},
                {"cp", 1}};
      Json named{{"participant_id", fmt::format("p{}", p)}, {"rank", rank}};
      out["topology"]["participants"].push_back(named);
      named["fragments"] = Json::array();
      for (const Fragment& each : fragments)
        if (each.participant == static_cast<int>(p))
          named["fragments"].push_back({{"placement_fragment_id", "f"},
                                        {"tensor_id", each.tensor},
                                        {"global_offset", {each.offset}},
                                        {"local_shape", {each.count}},
                                        {"nbytes", each.count * 4},
                                        {"rank", rank},
                                        {"aliases", each.aliases},
                                        {"pipeline_stage_id", 0}});
      out["parts"].push_back(named);
    }
    return out;
  }
};

void check_refused(const Made& made, const std::string& what) {
  CAPTURE(what);
  CHECK_THROWS_WITH(layouts_of(made.json(), "from", 0), Contains("a.json: ") && Contains(what));
}

ModelLayouts sides_of(const std::string& lines) {
  std::istringstream in(lines);
  LineReader reader(in, "made");
  return read_sides(reader, "made");
}

}  // namespace

TEST_CASE("the placements of a recorded plan of Mooncake") {
  ForeignLayouts from = layouts_of(recorded("source"), "from", 0);
  CHECK(from.end_rank == 2);
  CHECK(from.notes.empty());
  CHECK(tensor_lines(from.tensors) ==
        R"({"tensor": "model.layers.0.input_layernorm.weight", "shape": [8], "dtype": "bf16"}
{"tensor": "model.layers.0.mlp.gate_proj.weight", "shape": [8,8], "dtype": "bf16"}
{"tensor": "model.layers.0.self_attn.o_proj.weight", "shape": [8,8], "dtype": "bf16"}
)");
  auto line = [](const char* name, const char* ranks, const char* shape, const char* box) {
    return fmt::format(R"({{"side": "from", "buffer": "model.layers.0.{0}.weight", )"
                       R"("ranks": "{1}", "shape": [{2}], "dtype": "bf16", )"
                       R"("parts": [{{"tensor": "model.layers.0.{0}.weight"{3}}}]}})"
                       "\n",
                       name, ranks, shape, box);
  };
  CHECK(from.buffers == line("input_layernorm", "0-1", "8", "") +
                            line("mlp.gate_proj", "0", "4,8", R"(, "box": "0:4,0:8")") +
                            line("mlp.gate_proj", "1", "4,8", R"(, "box": "4:8,0:8")") +
                            line("self_attn.o_proj", "0", "8,4", R"(, "box": "0:8,0:4")") +
                            line("self_attn.o_proj", "1", "8,4", R"(, "box": "0:8,4:8")"));
  ForeignLayouts to = layouts_of(recorded("target"), "to", from.end_rank);
  CHECK(to.end_rank == 6);
  ModelLayouts sides = sides_of(layouts_text(from, to));
  CHECK(sides.source->ranks() == std::vector<Rank>{Rank{0}, Rank{1}});
  CHECK(sides.destination->ranks() == std::vector<Rank>{Rank{2}, Rank{3}, Rank{4}, Rank{5}});
  CHECK(sides.tensors->size() == 3);
}

TEST_CASE("a placement is read from a file, and the ranks begin where they are asked to") {
  test::TemporaryFolder folder;
  test::write_file(folder / "p.json", recorded("source").dump());
  ForeignLayouts found = read_placement(folder / "p.json", "to", 100);
  CHECK(found.end_rank == 102);
  CHECK_THAT(found.buffers, Contains(R"("ranks": "100-101")"));
  CHECK_THROWS_WITH(read_placement(folder / "q.json", "to", 0),
                    Contains("expected a placement manifest of Mooncake, found no such file"));
  CHECK_THROWS_WITH(read_placement(folder / "p.json", "to", 1048575),
                    Contains("expected at most 1048576 ranks, found 1048577"));
}

TEST_CASE("replicas, owners and shards of a placement") {
  // Two replicas of two shards; the second is cut elsewhere.
  Made made{{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, {{0, 0, 2}, {1, 2, 2}, {2, 0, 3}, {3, 3, 1}}};
  ForeignLayouts found = layouts_of(made.json(), "from", 0);
  CHECK(sides_of(layouts_text(found)).source->buffers().size() == 4);
  made.fragments[3].count = 2;
  made.fragments[3].offset = 2;
  check_refused(made, "tensor 'w': expected each element once in a replica, found some twice");
  made.fragments[2].count = 1;
  made.fragments[3].count = 1;
  check_refused(made, "tensor 'w': expected all 4 elements in each replica, found 2");
  made.fragments.resize(2);
  check_refused(made, "tensor 'w': expected 2 replicas, as the topology has, found 1");
  // Only some ranks own it.
  made.dp = "ownership";
  CHECK(sides_of(layouts_text(layouts_of(made.json(), "from", 0))).source->buffers().size() == 2);
  made.fragments.pop_back();
  check_refused(made, "expected all 4 elements in each replica, found 2");
  made.fragments = {{0, 0, 3}, {1, 2, 1}};
  check_refused(made, "expected each element once in a replica, found some twice");
  made.fragments.clear();
  check_refused(made, "tensor 'w': expected at least one fragment, found none");
}

TEST_CASE("several fragments that a participant has of a tensor are buffers of their own") {
  Made made{{{0, 0}}, {{0, 3, 1}, {0, 0, 2}, {0, 2, 1}}};
  ForeignLayouts found = layouts_of(made.json(), "from", 4);
  CHECK_THAT(found.buffers, Contains(R"("buffer": "w", "ranks": "4", "shape": [1])"));
  CHECK_THAT(found.buffers, Contains(R"("buffer": "w#2", "ranks": "4", "shape": [2])"));
  CHECK_THAT(found.buffers, Contains(R"("buffer": "w#3", "ranks": "4", "shape": [1])"));
  CHECK(sides_of(layouts_text(found)).source->buffers().size() == 3);
}

TEST_CASE("tied tensors of a placement are other names of one where both sides tie them") {
  Made tied{{{0, 0}, {0, 1}},
            {{0, 0, 4, "head", {"embed", "head"}}, {1, 0, 4, "embed", {"head", "embed"}}},
            {"head", "embed"},
            "ownership",
            false};
  Made untied = tied;
  for (Made::Fragment& fragment : untied.fragments) fragment.aliases.clear();
  // Which rank has it is not said by an axis here, and all of it is each time.
  ForeignLayouts from = layouts_of(tied.json(), "from", 0), to = layouts_of(tied.json(), "to", 2);
  const std::string lines = layouts_text(from, to);
  CHECK_THAT(lines, Contains("{\"tensor\": \"embed\", \"shape\": [4], \"dtype\": \"f32\"}\n"
                             "{\"tensor\": \"head\", \"alias_of\": \"embed\"}\n"));
  CHECK(sides_of(lines).source->buffers().size() == 2);
  ForeignLayouts apart = layouts_of(untied.json(), "to", 2);
  CHECK(joined(from.tensors, apart.tensors)[1].alias_of.empty());
  CHECK(joined(apart.tensors, from.tensors)[1].alias_of.empty());
  CHECK(sides_of(layouts_text(from, apart)).destination->buffers().size() == 2);

  Made wrong = tied;
  wrong.fragments[0].aliases = {"embed", "head", "other"};
  check_refused(wrong,
                "tensor 'head': expected the same aliases for each of them, found others "
                "for 'embed'");
  wrong.fragments[0].aliases = {"head", "other"};
  check_refused(wrong, "expected the same aliases for each of them, found none for 'other'");
  wrong.fragments[0].aliases = {"embed", "other"};
  check_refused(wrong, "aliases: expected the fragment's tensor and another one");
  wrong.fragments[0].aliases = {"head", "head"};
  check_refused(wrong, "aliases: expected each name once");
  wrong.fragments[0].aliases = {};
  check_refused(wrong,
                "tensor 'embed': expected the same aliases for each of them, found none for "
                "'head'");
}

TEST_CASE("fields of a placement that are missing, wrong or not known are refused") {
  const Json gone = "(gone)";
  check_refused("/extra", 1, "'extra': expected a field of a placement manifest, found an unknown");
  check_refused("/resource_kind", "kv_cache",
                "resource_kind: expected \"model_weight\", found 'kv_");
  check_refused("/revision", "", "revision: expected a text, found an empty one");
  check_refused("/placement_id", gone, "placement_id: expected a text");
  check_refused("/weight_generation", -1,
                "weight_generation: expected an integer from 0, found -1");
  check_refused("/tensors", 1, "tensors: expected a list, found 1");
  check_refused("/tensors/0", 1, "tensors[0]: expected a tensor, found 1");
  check_refused("/tensors/1/dtype", "quint8", "tensors[1]: dtype: expected");
  check_refused("/tensors/1/itemsize", 4, "tensors[1]: itemsize: expected 2, the bytes of a bf16");
  check_refused("/tensors/1/global_shape", Json::array(),
                "global_shape: expected at least one dim");
  check_refused("/tensors/1/global_shape/0", 0, "expected a list of at most 8 integers from 1");
  check_refused("/tensors/1/global_shape/0", std::int64_t{1} << 62, "expected at most 2^62 bytes");
  check_refused("/tensors/1/layer_id", gone, "layer_id: expected an integer from 0 or null");
  check_refused("/tensors/1/layer_id", "1", "layer_id: expected an integer from 0 or null, found");
  check_refused("/tensors/1/strides", 1,
                "'strides': expected a field of a tensor, found an unknown");
  check_refused("/tensors/1/parallel_axes/0/kind", "sp", "kind: expected dp, tp, pp, ep or cp");
  check_refused("/tensors/1/parallel_axes/0/semantics", "partial",
                "semantics: expected split, rep");
  check_refused("/tensors/1/parallel_axes/2/dim", 2, "parallel_axes[2]: dim: expected an integer");
  check_refused("/tensors/1/parallel_axes/0/dim", 0, "'dim': expected a field of an axis, found");
  check_refused("/tensors/1/tensor_id", "model.layers.0.input_layernorm.weight",
                "tensor_id: expec");
  check_refused("/topology/tp_size", 1,
                "participants[1]: rank: expected tp below tp_size 1, found");
  check_refused("/topology/tp_size", gone, "tp_size: expected an integer from 1");
  check_refused("/topology/participants", Json::array(), "participants: expected at least one");
  check_refused("/topology/participants/1/rank/tp", 0, "rank: expected each rank once, found one");
  check_refused("/topology/participants/1/rank/cp", 1, "expected cp below cp_size 1, found 1");
  check_refused("/topology/participants/1/participant_id", "trainer-0",
                "expected each participant");
  check_refused("/parts/1", gone, "parts: expected one for each of 2 participants, found 1");
  check_refused("/parts/1/participant_id", "trainer-0", "parts[1]: participant_id: expected each");
  check_refused("/parts/1/participant_id", "x",
                "participant_id: expected a participant of the top");
  check_refused("/parts/1/rank/tp", 0, "parts[1]: rank: expected that of the participant");
  const std::string fragment = "/parts/0/fragments/1/";
  check_refused(fragment + "tensor_id", "x", "tensor_id: expected one of the tensors, found 'x'");
  check_refused(fragment + "rank/dp", 1, "fragments[1]: rank: expected that of the participant");
  check_refused(fragment + "nbytes", 65, "nbytes: expected 64, the bytes of local_shape, found 65");
  check_refused(fragment + "global_offset", {1, 0},
                "expected a box within [8,8], found [8,4] at [1");
  check_refused(fragment + "global_offset", {0}, "expected a box within [8,8], found [8,4] at [0]");
  check_refused(fragment + "local_shape", {8, 0}, "expected a list of at most 8 integers from 1");
  check_refused(fragment + "pipeline_stage_id", "x",
                "pipeline_stage_id: expected an integer from 0");
  check_refused(fragment + "aliases", "x", "aliases: expected a list of texts, found 'x'");
  check_refused(fragment + "aliases/0", 1, "aliases: expected a list of texts, found 1");
  check_refused(fragment + "address", 1, "'address': expected a field of a fragment, found an");
  check_refused("/parts/0/fragments", Json::array(),
                "expected 2 replicas, as the topology has, fo");
  CHECK_THROWS_WITH(parse_placement("[]", "a.json", "from", 0),
                    "a.json: expected a placement manifest, found a list of 0");
  CHECK_THROWS_AS(parse_placement("{", "a.json", "from", 0), InputError);
}

TEST_CASE("a placement that ends too early is refused") {
  const std::string whole = recorded("source").dump();
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(parse_placement(whole.substr(0, size), "a.json", "from", 0), InputError);
}

}  // namespace reshard::sim::placement_file_tests
