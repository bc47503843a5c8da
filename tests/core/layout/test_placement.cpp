// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/layout/layout.h"

using namespace reshard;

namespace {

MeshRef mesh(const char* text) { return std::make_shared<const Mesh>(parse_mesh(text)); }
// What a spelling means on a 2x2 mesh and a 3-d tensor.
std::string read(const char* text) {
  return parse_layout("8,8,8", "f32", mesh("2x2"), text).placements_text();
}

}  // namespace

TEST_CASE("every spelling of placements is read") {
  for (const char* spelling :
       {"S(0)R", "S(0),R", "S0,R", "S0R", "Shard(0),Replicate()", "Shard(dim=0), Replicate()",
        "[Shard(dim=0), Replicate()]", "(Shard(0), Replicate())", "S(0) R", "S(-3)R",
        " S( 0 ) , R ", "Shard(dim=-3),R"}) {
    INFO(spelling);
    CHECK(read(spelling) == "S(0)R");
  }
  for (const char* spelling :
       {"_S(0,2)P", "_S(0, 2),P(sum)", "_StridedShard(dim=0, sf=2),Partial()",
        "_StridedShard(0,2)Partial(sum)", "_StridedShard(dim=0, split_factor=2), Partial('sum')",
        "_S(0,2)Partial(reduce_op=sum)"}) {
    INFO(spelling);
    CHECK(read(spelling) == "_S(0, 2)P(sum)");
  }
  CHECK(read("P(avg)P") == "P(avg)P(sum)");
  CHECK(read("Partial(prod)P(product)") == "P(product)P(product)");
  CHECK(read("S(1)[1]S(1)[0]") == "S(1)[1]S(1)[0]");
  CHECK(read("S(1)[0]S(1)[1]") == "S(1)S(1)");  // the default order is not printed
  CHECK(read("S(0)[1],S(0)[0]") == "S(0)[1]S(0)[0]");
  CHECK(read("_S(0,2)[1],S(0)[0]") == "_S(0, 2)[1]S(0)[0]");
}

TEST_CASE("placements print as str of PyTorch") {
  CHECK(text(Placement::shard(1)) == "S(1)");
  CHECK(text(Placement::strided_shard(0, 4)) == "_S(0, 4)");
  CHECK(text(Placement::partial(ReduceOp::Max)) == "P(max)");
  CHECK(text(Placement::replicate()) == "R");
}

TEST_CASE("bad placements are one clear sentence") {
  auto refused = [](const char* shape, const char* text, const char* what) {
    INFO(text);
    CHECK_THROWS_AS(parse_layout(shape, "f32", mesh("2x2"), text, "--from"), InputError);
    CHECK_THROWS_WITH(parse_layout(shape, "f32", mesh("2x2"), text, "--from"),
                      Catch::Contains(what));
  };
  refused("8,8", "S(0)", "--from: expected 2 placements, one per mesh axis, found 1");
  refused("8,8", "RRR", "--from: expected 2 placements, one per mesh axis, and no more");
  refused("8,8", "S(2)R", "--from: expected a tensor dim between -2 and 1");
  refused("8,8", "S(-3)R", "a tensor dim between -2 and 1");
  refused("", "S(0)R", "no Shard, as the tensor has 0 dims");
  refused("8,8", "X R", "expected a placement such as");
  refused("8,8", "S(0", "expected ')'");
  refused("8,8", "_S(0)R", "expected ','");
  refused("8,8", "_S(0,0)R", "a split factor between 1 and");
  refused("8,8", "P(median)R", "expected one of sum avg");
  refused("8,8", "R,R,", "expected a placement");
  refused("8,8", "S(0)[0]S(0)[0]", "each position 0..1 once");
  refused("8,8", "S(0)[1]S(1)", "each position 0..0 once");
  refused("8,8", "R[0]R", "only after a Shard");
  refused("8,8", "_S(0,2)S(0)[0]", "each position 0..1 once");
  refused("8,8", "S(99999999999999999999)R", "a tensor dim between");
  refused("-1,8", "RR", "expected an extent between 0 and");
  refused("4611686018427387904,4611686018427387904", "RR", "at most 2^62 bytes");
  refused("1,1,1,1,1,1,1,1,1", "RR", "at most 8 dims, found more");
}

TEST_CASE("dtypes by the short names of torch") {
  CHECK(parse_dtype("f8e4m3fn") == DType::F8E4M3);  // as PyTorch abbreviates it in specs
  for (auto [alias, dtype] :
       std::vector<std::pair<const char*, DType>>{{"double", DType::F64},
                                                  {"float", DType::F32},
                                                  {"half", DType::F16},
                                                  {"long", DType::I64},
                                                  {"int", DType::I32},
                                                  {"short", DType::I16},
                                                  {"cfloat", DType::C64},
                                                  {"float8_e4m3", DType::F8E4M3},
                                                  {"b8", DType::Bool}})
    CHECK(parse_dtype(alias) == dtype);
  CHECK_THROWS_WITH(parse_dtype("f33"), Catch::Contains("found 'f33'"));
}

TEST_CASE("a sharding as JAX writes it") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("dp=2,tp=4"));
  auto placements = [&](const char* spec) {
    return parse_layout("16,16,16", "f32", mesh, spec).placements_text();
  };
  CHECK(placements("PartitionSpec('dp', None)") == "S(0)R");
  CHECK(placements("PartitionSpec(None, 'tp', 'dp')") == "S(2)S(1)");
  CHECK(placements("PartitionSpec(('dp', 'tp'))") == "S(0)S(0)");
  CHECK(placements("PartitionSpec(None, ('tp', 'dp'),)") == "S(1)[1]S(1)[0]");
  CHECK(placements("PartitionSpec()") == "RR");
  CHECK(placements("P('dp')") == "S(0)R");
  CHECK(placements("P(\"tp\", 'dp')") == "S(1)S(0)");
  CHECK(placements("P(None, 'dp')") == "S(1)R");
  CHECK(placements("P(('dp', 'tp'), None, None)") == "S(0)S(0)");
  const std::pair<const char*, const char*> wrong[] = {
      {"PartitionSpec('pp')", "an axis of the mesh dp=2,tp=4, found 'pp'"},
      {"PartitionSpec('dp', 'dp')", "every axis at most once, found 'dp'"},
      {"PartitionSpec(dp)", "None or an axis such as 'dp', found 'dp)'"},
      {"PartitionSpec(None, None, None, 'dp')", "at most 3 dims before this, found ''dp')'"},
      {"PartitionSpec('dp'", "')', found the end"},
      {"PartitionSpec('dp') ,", "the end, found ','"},
  };
  for (auto [spec, what] : wrong)
    CHECK_THROWS_WITH(placements(spec), std::string("placements: expected ") + what);
  mesh = std::make_shared<const Mesh>(parse_mesh("2x4"));
  CHECK_THROWS_WITH(placements("P('dp')"),
                    "placements: expected a mesh with axis names, such as dp=2,tp=2, found 'dp'");
}
