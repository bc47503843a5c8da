// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "core/layout/mesh.h"

using namespace reshard;

TEST_CASE("a mesh in all its spellings") {
  CHECK(parse_mesh("4x4").shape() == std::vector<std::int32_t>{4, 4});
  CHECK(parse_mesh("8").size() == 8);
  Mesh named = parse_mesh("dp=4,tp=2");
  CHECK(named.names() == std::vector<std::string>{"dp", "tp"});
  CHECK(shape_text(named) == "dp=4,tp=2");
  Mesh nested = parse_mesh("[[0,1],[2,3]]");
  CHECK(nested == parse_mesh("2x2"));
  CHECK(parse_mesh("[[3, 1], [0, 2]]").ranks() ==
        std::vector<Rank>{Rank{3}, Rank{1}, Rank{0}, Rank{2}});
  CHECK(parse_mesh("[5,6]").shape() == std::vector<std::int32_t>{2});
  CHECK(parse_mesh("2x2", "8-9,4,5").ranks() ==
        std::vector<Rank>{Rank{8}, Rank{9}, Rank{4}, Rank{5}});
}

TEST_CASE("a mesh as PyTorch prints it") {
  Mesh named = parse_mesh("DeviceMesh('cuda', [[0, 1], [4, 5]], mesh_dim_names=('dp', 'tp'))");
  CHECK(shape_text(named) == "dp=2,tp=2");
  CHECK(ranks_text(named.ranks()) == "0-1,4-5");
  CHECK(shape_text(parse_mesh("DeviceMesh('cpu', [0, 1, 2])")) == "3");
  CHECK(shape_text(parse_mesh("DeviceMesh((dp=2, tp=4), device_type='cuda', stride=(4, 1))")) ==
        "dp=2,tp=4");
  CHECK(shape_text(parse_mesh("DeviceMesh((8,), \"cuda\")")) == "8");
  CHECK(ranks_text(parse_mesh("DeviceMesh((2, 2), 'cuda')", "4-7").ranks()) == "4-7");
}

TEST_CASE("strides say which ranks a printed mesh has, unless the ranks are given") {
  auto ranks = [](const char* mesh, const char* list = "") {
    return ranks_text(parse_mesh(mesh, list).ranks());
  };
  CHECK(ranks("DeviceMesh((2, 3), stride=(1, 2))") == "0,2,4,1,3,5");
  CHECK(ranks("DeviceMesh((dp=2, tp=2), 'cuda', stride=(4, 1))") == "0-1,4-5");
  CHECK(ranks("DeviceMesh((2, 2), stride=(2, 1))", "4-7") == "4-7");
  CHECK(ranks("DeviceMesh((2,), stride=(1048575,))") == "0,1048575");
  CHECK(ranks("DeviceMesh((1, 2), stride=(0, 1))") == "0-1");
  CHECK(ranks("DeviceMesh(device_type: 'cuda', mesh: [[3, 1]], mesh_dim_names: ('a', 'b'))") ==
        "3,1");
  CHECK(ranks("DeviceMesh((2, 2), [[0, 1], [2, 3]])") == "0-3");
  auto refused = [](const char* mesh, const char* list, const std::string& what) {
    CHECK_THROWS_WITH(parse_mesh(mesh, list, "--mesh"), "--mesh: expected " + what);
  };
  refused("DeviceMesh((2,), stride=(1048576,))", "", "ranks below 2^20, found 1048576");
  refused("DeviceMesh((1,), stride=(-1,))", "", "a stride between 0 and 1048576, found '-1,))'");
  refused("DeviceMesh((1,), stride=(1048577,))", "",
          "a stride between 0 and 1048576, found '1048577,))'");
  refused("DeviceMesh((2, 2), stride=(1,))", "", "a stride per axis");
  refused("DeviceMesh((2, 2), stride=(1,))", "0-3", "a stride per axis");
  refused("DeviceMesh((4,), [[0, 1], [2, 3]])", "", "ranks in the shape of the sizes");
  refused("DeviceMesh('cpu', [0, 1])", "0-1", "ranks in brackets or as a list, found both");
  refused("DeviceMesh((1, 1, 1, 1, 1, 1))", "", "at most 5 axes, found more");
  refused("2x2", "0-2", "4 ranks for its shape, found 3");
}

TEST_CASE("meshes and rank lists at their limits") {
  for (const char* mesh : {"1x1x1x1x2", "a=1,b=1,c=1,d=1,e=2", "[[[[[0,1]]]]]",
                           "DeviceMesh((1, 1, 1, 1, 2))", "1*1*1*1*2"})
    CHECK(parse_mesh(mesh).shape() == std::vector<std::int32_t>{1, 1, 1, 1, 2});
  CHECK(parse_mesh("1048576").size() == 1048576);
  CHECK(parse_mesh("[1048575,0]").rank_at(0) == Rank{1048575});
  CHECK_THROWS_WITH(parse_mesh("[1048576,0]"),
                    "mesh: expected a rank between 0 and 1048575, found '1048576,0]'");
  CHECK(shape_text(parse_mesh("dp=2, tp=4")) == "dp=2,tp=4");
  CHECK(ranks_text(parse_ranks(" 0 , 3-4 ", "r")) == "0,3-4");
  CHECK_THROWS_WITH(parse_ranks("0-3x", "r"), "r: expected the end, found 'x'");
  CHECK(parse_ranks("0-1048575", "r").size() == 1048576);
  CHECK(parse_ranks("1048575-1048575,3", "r") == std::vector<Rank>{Rank{1048575}, Rank{3}});
  CHECK_THROWS_WITH(parse_ranks("0-1048574,3-4", "r"),
                    "r: expected at most 2^20 ranks, found more");
  CHECK_THROWS_WITH(parse_ranks("1048576", "r"),
                    "r: expected a rank between 0 and 1048575, found '1048576'");
}

TEST_CASE("a shape as Python prints it") {
  for (const char* text :
       {"8,16", " 8, 16 ", "[8, 16]", "(8, 16)", "(8, 16,)", "torch.Size([8, 16])"}) {
    INFO(text);
    CHECK(parse_shape(text) == Shape{8, 16});
  }
  for (const char* text : {"", "[]", "()", "torch.Size([])"}) CHECK(parse_shape(text).size() == 0);
  CHECK(text(Shape{8, 16}) == "8,16");
  CHECK(text(Shape{}).empty());
  CHECK(text(Box{{0, 2}, {4, 3}}) == "[0:4,2:3]");
  for (const char* text :
       {"[8, 16", "8, 16]", "(8, 16]", "torch.Size([8, 16]", "8,", "8 16", ","}) {
    INFO(text);
    CHECK_THROWS_AS(parse_shape(text), InputError);
  }
}

TEST_CASE("positions, coordinates and ranks are inverse to each other") {
  for (const Mesh& mesh :
       {parse_mesh("2x3x4"), parse_mesh("2x2", "7,3,9,1"), parse_mesh("5", "10-14")})
    for (std::int32_t position = 0; position < mesh.size(); ++position) {
      CHECK(mesh.position_at(mesh.coordinate(position)) == position);
      CHECK(mesh.position_of(mesh.rank_at(position)) == position);
    }
  CHECK(parse_mesh("2x3x4").coordinate(17) == MeshCoordinate{1, 1, 1, 0, 0});
  CHECK_FALSE(parse_mesh("5", "10-14").position_of(Rank{15}).has_value());
  CHECK_FALSE(parse_mesh("2", "7,3").position_of(Rank{5}).has_value());
}

TEST_CASE("rank lists fold runs and read back") {
  for (const char* text : {"0-7", "0-3,8-11", "3,1,2", "5", "0,2,4"}) {
    std::vector<Rank> ranks = parse_ranks(text, "ranks");
    CHECK(parse_ranks(ranks_text(ranks), "ranks") == ranks);
  }
  CHECK(ranks_text(parse_ranks("0-3,8-11", "r")) == "0-3,8-11");
  CHECK(ranks_text(parse_ranks("3,1,2", "r")) == "3,1-2");
}

TEST_CASE("bad meshes are one clear sentence") {
  auto refused = [](const char* mesh, const char* ranks, const char* what) {
    INFO(mesh << " " << ranks);
    CHECK_THROWS_AS(parse_mesh(mesh, ranks), InputError);
    CHECK_THROWS_WITH(parse_mesh(mesh, ranks), Catch::Contains(what));
  };
  refused("", "", "expected a mesh such as");
  refused("0x4", "", "expected an axis size between 1 and");
  refused("0", "", "expected an axis size between 1 and");
  refused("1000000000000", "", "expected an axis size between 1 and");
  refused("1048577", "", "an axis size between 1 and 1048576");
  refused("1024x1025", "", "at most 1048576 ranks");
  refused("-4", "", "expected a mesh");
  refused("2x2x2x2x2x2", "", "at most 5 axes, found more");
  refused("2x2x2x2x2x2x2", "", "at most 5 axes, found more");
  refused("a=1,b=1,c=1,d=1,e=1,f=1", "", "at most 5 axes, found more");
  refused("[[[[[[0]]]]]]", "", "at most 5 levels of brackets, found more");
  refused("4x", "", "expected an axis size");
  refused("dp=4,dp=2", "", "'dp' twice");
  refused("dp4", "", "expected '='");
  refused("2x2", "0-2", "expected 4 ranks for its shape, found 3");
  refused("2x2", "0,1,1,2", "found 1 twice");
  refused("2x2", "0-1048576", "a last rank between 0 and 1048575");
  refused("2", "0-1048575,0", "at most 2^20 ranks");
  refused("2", "3-1", "a last rank between 3");
  refused("[[0,1],[2]]", "", "rows of equal length");
  refused("[[0,1],2]", "", "expected");
  refused("[0,[1]]", "", "expected");
  refused("[[0,1],[1,2]]", "", "found 1 twice");
  refused("[[[[[[0]]]]]]", "", "5 levels");
  refused("[0,1]", "0-1", "found both");
  refused("[0,1", "", "expected ']'");
  refused("DeviceMesh('cuda')", "", "expected");
  refused("DeviceMesh('cuda', [[0, 1], [2]])", "", "rows of equal length");
  refused("DeviceMesh('cuda', [0, 1], mesh_dim_names=('dp', 'tp'))", "", "expected");
  refused("DeviceMesh('cuda', [0, 1]", "", "expected ')'");
  refused("DeviceMesh('cuda, [0, 1])", "", "expected");
  refused("DeviceMesh((2, 2), 'cuda', depth=3)", "", "a mesh as PyTorch prints it");
}
