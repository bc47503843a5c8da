// SPDX-License-Identifier: BSD-3-Clause
// The picture against the layouts' own boxes: areas are shares, and colours are holders.
#include <catch2/catch.hpp>
#include <regex>
#include <set>

#include "core/base/errors.h"
#include "core/layout/request.h"
#include "sim/picture/pictures.h"
#include "sim/report/ratios.h"
#include "tests/sim/picture/read_back.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

Request request_of(const std::string& mesh, const std::string& shape, const std::string& from,
                   const std::string& to, const std::string& to_mesh = {},
                   const std::string& to_ranks = {}) {
  RequestTexts texts;
  texts.mesh = mesh, texts.shape = shape, texts.from = from, texts.to = to;
  texts.to_mesh = to_mesh, texts.to_ranks = to_ranks;
  return parse_request(texts);
}

ReadBack picture_of(const Request& request) {
  return ReadBack([&](Node parent) { draw_sharding(parent, request); });
}

// What a tip says: "ranks 0,4 + 1,5: [0:2,4:8], ...".
struct Tip {
  std::set<std::int32_t> ranks;
  Box box;
};
std::set<std::int32_t> ranks_in(const std::string& text) {
  std::set<std::int32_t> out;
  std::regex range("([0-9]+)(-([0-9]+))?");
  for (std::sregex_iterator it(text.begin(), text.end(), range), end; it != end; ++it) {
    std::int32_t first = std::stoi((*it)[1]), last = (*it)[3].matched ? std::stoi((*it)[3]) : first;
    for (std::int32_t rank = first; rank <= last; ++rank) out.insert(rank);
  }
  return out;
}
Tip shown(const std::string& tip) {
  std::size_t colon = tip.find(": ["), close = tip.find(']');
  REQUIRE(colon != std::string::npos);
  Tip out{ranks_in(tip.substr(0, colon)), {}};
  std::string box = tip.substr(colon + 2, close - colon - 2);
  std::regex range("([0-9]+):([0-9]+)");
  for (std::sregex_iterator it(box.begin(), box.end(), range), end; it != end; ++it) {
    out.box.lo.push_back(std::stoll((*it)[1]));
    out.box.hi.push_back(std::stoll((*it)[2]));
  }
  return out;
}

// The ranks whose shard has this element.
std::set<std::int32_t> holders(const Layout& layout, const DimVector& index) {
  Box element = box_at(index, DimVector(index.size(), 1));
  std::set<std::int32_t> out;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    for (const Box& box : layout.boxes(position))
      if (contains(box, element)) out.insert(to_int(layout.mesh().rank_at(position)));
  return out;
}

struct DrawnTile {
  Tip shown;
  Area area;
  std::string colour;
};
std::vector<DrawnTile> parts_of(const ReadBack& picture, const std::string& side) {
  std::vector<DrawnTile> out;
  for (Node node : picture.all("//g[@class='" + side + "']//rect[title]"))
    out.push_back(
        {shown(node.child("title").text().get()), area(node), node.attribute("fill").value()});
  return out;
}

std::vector<Request> all_requests() {
  std::vector<Request> out{
      request_of("2x4", "16,24", "S(0)R", "RS(1)"),
      request_of("2x2", "7,5", "S(0)S(1)", "S(1)S(0)"),
      request_of("4", "10", "S(0)", "S(0)", "6", "8-13"),
      request_of("2x2", "16,6", "S(0)_S(0,4)", "RS(1)"),
      request_of("2x3", "11,13", "PS(0)", "S(1)R"),
      request_of("8", "64,8", "S(0)", "R"),
      request_of("2x2x2", "8,4,6", "S(0)S(1)S(2)", "S(2)S(0)S(1)"),
  };
  const std::vector<std::string> placements{"R", "S(0)", "S(1)", "P", "_S(0,2)"};
  for (const char* shape : {"7,5", "1,6"})
    for (const std::string& from : placements)
      for (const std::string& from_last : placements)
        for (const std::string& to : placements)
          for (const std::string& to_last : placements) try {
              out.push_back(request_of("2x3", shape, from + "," + from_last, to + "," + to_last));
            } catch (const InputError&) {  // forbidden by DTensor
            }
  return out;
}

}  // namespace

TEST_CASE("boxes are as large as their share, and fill the tensor without overlap") {
  for (const Request& request : all_requests())
    for (const char* side : {"before", "after"}) {
      const Layout& layout =
          side == std::string("before") ? request.source() : request.destination();
      ReadBack picture = picture_of(request);
      std::vector<Area> boxes;
      for (Node node : picture.all("//g[@class='" + std::string(side) + "']//rect[@class='box']"))
        boxes.push_back(area(node));
      double all = 0;
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        all += boxes[i].size();
        for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(boxes[i].overlaps(boxes[j]));
      }
      std::map<std::int32_t, double> of_rank;
      double parts = 0;
      for (const DrawnTile& part : parts_of(picture, side)) {
        parts += part.area.size();
        for (std::int32_t rank : part.shown.ranks) of_rank[rank] += part.area.size();
      }
      CHECK(parts == Approx(all).epsilon(1e-3));
      for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
        double share = static_cast<double>(element_count(layout.local_shape(position))) /
                       static_cast<double>(element_count(layout.shape()));
        CAPTURE(request.text(), side, position);
        CHECK(of_rank[to_int(layout.mesh().rank_at(position))] ==
              Approx(share * all).epsilon(2e-3));
      }
    }
}

TEST_CASE("tips name the holders of every part") {
  for (const Request& request : all_requests())
    for (const char* side : {"before", "after"}) {
      const Layout& layout =
          side == std::string("before") ? request.source() : request.destination();
      for (const DrawnTile& part : parts_of(picture_of(request), side)) {
        CAPTURE(request.text(), side, text(part.shown.box));
        CHECK(holders(layout, part.shown.box.lo) == part.shown.ranks);
        DimVector last = part.shown.box.hi;
        for (int d = 0; d < last.size(); ++d) --last[d];
        CHECK(holders(layout, last) == part.shown.ranks);
      }
    }
}

TEST_CASE("explicit boxes are drawn where a rank holds something") {
  std::vector<Request> requests{
      request_of("4", "16,8", "S(0)", "boxes(1: [0:4,:])"), request_of("4", "16,8", "R", "boxes()"),
      request_of("4", "16,8", "boxes(2: [0:4,2:4])", "boxes(0-1: [2:3,2:4])", "2"),
      request_of("4", "16,8",
                 "boxes(0: [0:4,:]; 1: [4:8,:], [0:2,:]; 2: [8:16,0:5]; 3: [8:12,5:8], "
                 "[14:16,5:8])",
                 "boxes(0: [0:4,:], [8:12,:]; 1: [4:8,0:6])", "2")};
  test::Prng prng(3);
  while (requests.size() < 300 / test::kOneOf)
    if (auto request = test::draw_request_with_boxes(prng);
        request && request->shape().size() <= 2 && element_count(request->shape()) > 0)
      requests.push_back(*std::move(request));
  for (const Request& request : requests)
    for (const char* side : {"before", "after"}) {
      const Layout& layout =
          side == std::string("before") ? request.source() : request.destination();
      bool joined = layout.cuts(0).size() > 17 || layout.cuts(layout.dims() - 1).size() > 17;
      CAPTURE(request.text(), side);
      std::map<std::int32_t, std::int64_t> elements;
      for (const DrawnTile& part : parts_of(picture_of(request), side)) {
        if (!joined) CHECK(holders(layout, part.shown.box.lo) == part.shown.ranks);
        for (std::int32_t rank : part.shown.ranks) elements[rank] += part.shown.box.volume();
      }
      for (std::int32_t position = 0; position < layout.mesh().size() && !joined; ++position)
        CHECK(elements[to_int(layout.mesh().rank_at(position))] == elements_held(layout, position));
    }
  auto tips = picture_of(requests[3]).texts("title");
  CHECK(tips["ranks 0-1: [0:2,0:5], 40 B"] == 1);  // their shards differ in size
}

TEST_CASE("tips say bytes, and of a strided shard how many its pieces are together") {
  auto tips = picture_of(request_of("2x2", "16,6", "S(0)_S(0,4)", "RS(1)")).texts("title");
  CHECK(tips["rank 1: [1:2,0:6], 24 B of 96 B each"] == 1);
  CHECK(tips["ranks 1,3: [8:9,3:6], 12 B of 192 B each; before on 2"] == 1);
  auto whole = picture_of(request_of("4", "8", "S(0)", "R")).texts("title");
  CHECK(whole["rank 3: [6:8], 8 B"] == 1);
  CHECK(whole["ranks 0-3: [6:8], 8 B of 32 B each; before on 3"] == 1);
}

TEST_CASE("one colour is the data of the same holders, before, or after what was in one place") {
  for (const Request& request : all_requests()) {
    ReadBack picture = picture_of(request);
    bool one_place = picture.all("//g[@class='before']//rect[@class='box']").size() == 1;
    const Layout& key = one_place ? request.destination() : request.source();
    std::map<std::string, std::set<std::int32_t>> holders_of;
    std::map<std::set<std::int32_t>, std::string> colour_of;
    for (const char* side : {"before", "after"})
      for (const DrawnTile& part : parts_of(picture, side)) {
        auto held = holders(key, part.shown.box.lo);
        CAPTURE(request.text(), side, text(part.shown.box), part.colour);
        CHECK(holders_of.emplace(part.colour, held).first->second == held);
        CHECK(colour_of.emplace(held, part.colour).first->second == part.colour);
      }
  }
}

TEST_CASE("what was whole before has the colours of the shards after") {
  for (const char* from : {"R", "P"}) {
    Request request = request_of("8", "64,8", from, "S(0)");
    ReadBack picture = picture_of(request);
    std::map<std::string, std::set<std::int32_t>> holders_of;
    for (const char* side : {"before", "after"}) {
      std::vector<DrawnTile> parts = parts_of(picture, side);
      CHECK(parts.size() == 8);
      for (const DrawnTile& part : parts) {
        auto held = holders(request.destination(), part.shown.box.lo);
        CHECK(holders_of.emplace(part.colour, held).first->second == held);
      }
    }
    CHECK(holders_of.size() == 8);
  }
}

TEST_CASE("labels: replicas, addends, parts") {
  auto texts = picture_of(request_of("2x4", "16,24", "S(0)P", "RS(1)")).texts("text");
  CHECK(texts["0 + 1 + 2 + 3"] == 1);
  CHECK(texts["4 + 5 + 6 + 7"] == 1);
  CHECK(texts["0,4"] == 1);
  CHECK(texts["[:, 0:6]"] == 1);
  CHECK(texts["S(0)P(sum)"] == 1);
  CHECK(texts["mesh 2x4, ranks 0-7"] == 2);
  CHECK(texts["dim 0: 16"] == 2);
  auto mixed = picture_of(request_of("2x2", "8", "RP(max)", "RR")).texts("text");
  CHECK(mixed["0,2 max 1,3"] == 1);
  CHECK(mixed["0-3"] == 1);
}

TEST_CASE("Partial is hatched, and nothing else") {
  auto hatched = [](const Request& request, const std::string& side) {
    ReadBack picture = picture_of(request);
    return picture.all("//g[@class='" + side + "']//path").size();
  };
  Request folded = request_of("2x2", "8,8", "PS(0)", "RS(0)");
  CHECK(hatched(folded, "before") == 2);
  CHECK(hatched(folded, "after") == 0);
  CHECK(hatched(request_of("1x4", "8,8", "PS(0)", "RS(0)"), "before") == 0);
}

TEST_CASE("empty shards are named") {
  auto texts = picture_of(request_of("4", "10", "S(0)", "S(0)", "6", "8-13")).texts("text");
  CHECK(texts["Empty after: rank 13."] == 1);
  auto many = picture_of(request_of("8", "3", "S(0)", "R")).texts("text");
  CHECK(many["Empty before: ranks 3-7."] == 1);
}

TEST_CASE("more dims are slices") {
  Request request = request_of("2x2x2x2", "2,8,6,4", "S(0)S(1)S(2)S(3)", "RRRR");
  ReadBack picture = picture_of(request);
  CHECK(picture.all("//g[@class='before']").size() == 4);
  auto texts = picture.texts("text");
  CHECK(texts["dim 1: 8"] == 8);
  CHECK(texts["dim 2: 6"] == 2);
  CHECK(texts["dim 0 at 0:1, dim 3 at 0:2"] == 1);
  CHECK(texts["dim 0 at 1:2, dim 3 at 2:4"] == 1);
  ReadBack more = picture_of(request_of("2x2x2x2", "2,2,2,2,8", "S(0)S(1)S(2)S(3)", "S(4)RRR"));
  CHECK(more.texts("text")["The first 4 of 8 slices."] == 1);
}

TEST_CASE("scalars and tensors without elements") {
  ReadBack scalar = picture_of(request_of("2", "", "R", "R"));
  CHECK(scalar.texts("text")["0-1"] == 2);
  ReadBack empty = picture_of(request_of("2", "0,4", "S(0)", "R"));
  CHECK(empty.texts("text")["Empty before: ranks 0-1."] == 1);
}

TEST_CASE("of many ranks neighbours share a box, and the picture stays small") {
  for (const Request& request : {request_of("32x32", "4096,4096", "S(0)S(1)", "S(1)S(0)"),
                                 request_of("1024", "1000000", "S(0)", "R"),
                                 request_of("8x128", "4096,4096", "S(0)_S(0,64)", "S(1)S(1)")}) {
    ReadBack picture = picture_of(request);
    CAPTURE(request.text());
    CHECK(picture.bytes() < 600'000);
    CHECK(picture.texts(
              "text")["There are more shards than can be drawn, so neighbours share a box."] == 1);
    for (const char* side : {"before", "after"})
      CHECK(picture.all("//g[@class='" + std::string(side) + "']//rect[@class='box']").size() <=
            256);
  }
  // In the crowd of 16 x 16 boxes the first of a row says where it begins.
  ReadBack crowd = picture_of(request_of("32x32", "4096,4096", "S(0)S(1)", "S(1)S(0)"));
  std::map<std::string, std::set<double>> columns;
  for (const char* side : {"before", "after"})
    for (Node words : crowd.all("//g[@class='" + std::string(side) + "']/g/text"))
      columns[side].insert(number(words, "x"));
  CHECK(columns["before"].size() == 1);
  CHECK(columns["after"].size() == 1);
  ReadBack huge = picture_of(request_of("32768", "1000000", "S(0)", "R"));
  CHECK(huge.texts("text")["More than 16384 ranks on one mesh: not drawn."] == 1);
}
