// SPDX-License-Identifier: BSD-3-Clause
// Files of digests that are refused: damaged ones, those of other layouts, and parts given twice.
#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "core/base/errors.h"
#include "sim/digest/digest_file.h"
#include "sim/trace/line_reader.h"

using namespace reshard;
using namespace reshard::sim;
using Catch::Matchers::Contains;

namespace {

constexpr std::string_view kFile =
    R"({"reshard_digest": 1, "sides": ["to"],
"tensors": [
{"tensor": "w", "shape": [4,3], "dtype": "bf16", "rows": 2}],
"parts": [
)"
    R"({"side": "to", "ranks": "0-1", "buffer": "b", "tensor": "w", "box": ":,:", )"
    R"("digests": ["0123456789abcdef","00000000000000ff"], )"
    R"("heads": ["0000000000000001","0000000000000002"]},
)"
    R"({"side": "to", "ranks": "0-1", "buffer": "b", "tensor": "w", "box": ":,:", "time": 1, )"
    R"("digests": ["0123456789abcdef","00000000000000ff"]}]}
)";

std::string changed(const std::string& from, const std::string& to) {
  std::string out(kFile);
  std::size_t at = out.find(from);
  REQUIRE(at != std::string::npos);
  return out.replace(at, from.size(), to);
}

void check_refused(const std::string& text, const std::string& what) {
  CAPTURE(text);
  CHECK_THROWS_WITH(read_digest_file(text, "d.json"), Contains("d.json") && Contains(what));
  CHECK_THROWS_AS(read_digest_file(text, "d.json"), InputError);
}

ModelLayouts layouts(std::string lines) {
  lines = "{'reshard_check': 1}\n" + lines;
  std::replace(lines.begin(), lines.end(), '\'', '"');
  std::istringstream in(lines);
  LineReader reader(in, "m");
  return read_sides(reader, "m");
}

}  // namespace

TEST_CASE("a file of digests is written as it was read") {
  DigestFile file = read_digest_file(kFile, "d.json");
  CHECK(write_digest_file(file) == kFile);
  REQUIRE(file.parts.size() == 2);
  CHECK(file.parts[0].digests->blocks[1] == 255);
  CHECK(file.parts[0].digests->heads[1] == 2);
  CHECK(file.parts[1].digests->heads == file.parts[1].digests->blocks);
  CHECK(write_digest_file(gathered({file})) == kFile);
}

TEST_CASE("files of digests that are not what they should be are refused") {
  check_refused("", "expected digests, as reshard digest prints them, found");
  check_refused("{}", "expected digests, as reshard digest prints them, found");
  check_refused("[\"reshard_digest\"]", "");
  for (std::size_t size = 20; size + 1 < kFile.size(); size += 7)
    check_refused(std::string(kFile.substr(0, size)), "no JSON at byte");
  check_refused(changed("digest\": 1", "digest\": 2"), "reshard_digest");
  check_refused(changed("[\"to\"]", "\"to\""), "sides");
  check_refused(changed("[\"to\"]", "[\"to\", \"to\"]"), "each once");
  check_refused(changed("[\"to\"]", "[\"by\"]"), "sides");
  check_refused(changed("[\"to\"]", "[\"from\"]"), "parts[0]: side: expected one of \"sides\"");
  check_refused(changed("\"rows\": 2", "\"rows\": 0"), "tensors[0]: rows");
  check_refused(changed("\"rows\": 2", "\"rows\": 1"), "a list of 4 digests, one per block");
  check_refused(changed("bf16", "bf17"), "tensors[0]: dtype");
  check_refused(changed("[4,3]", "[4,-3]"), "tensors[0]: shape");
  check_refused(changed("\"rows\": 2}", "\"rows\": 2}, 5"), "tensors[1]: expected an object");
  check_refused(changed("\"rows\": 2", "\"rows\": 2, \"x\": 1"), "'x'");
  check_refused(changed("\"w\", \"box\"", "\"v\", \"box\""), "parts[0]: tensor: expected one of");
  check_refused(changed(":,:", "0:5,:"), "parts[0]: box");
  check_refused(changed(":,:", "0:0,:"), "parts[0]: box");
  check_refused(changed("0-1", "1-0"), "parts[0]: ranks");
  check_refused(changed("0123456789abcdef", "0123456789ABCDEF"), "digests of 16 hex digits");
  check_refused(changed(",\"00000000000000ff\"", ""), "a list of 2 digests, one per block");
  check_refused(changed("\"time\": 1", "\"time\": -1"), "parts[1]: time");
}

TEST_CASE("digests of other layouts are refused") {
  DigestFile file = read_digest_file(kFile, "d.json");
  std::string tensor = "{'tensor': 'w', 'shape': [4, 3], 'dtype': 'bf16'}\n",
              buffer = "{'side': 'to', 'buffer': 'b', 'mesh': '2', 'fused': ['w', 'w']}\n";
  Digests read = digests_in(file, layouts(tensor + buffer), "d.json");
  CHECK(read.of(DigestSide::To)->size() == 2);
  CHECK((*read.of(DigestSide::To))[0][0]->heads[0] == 1);
  CHECK((*read.of(DigestSide::To))[0][1]->heads[0] == 0x0123456789abcdef);
  auto refused = [&](const std::string& lines, const std::string& what) {
    CHECK_THROWS_WITH(digests_in(file, layouts(lines), "d.json"),
                      Contains("d.json: ") && Contains(what));
  };
  refused("{'tensor': 'w', 'shape': [4, 4], 'dtype': 'bf16'}\n" + buffer, "with w bf16[4,4]");
  refused("{'tensor': 'w', 'shape': [4, 3], 'dtype': 'f16'}\n" + buffer, "with w f16[4,3]");
  refused(tensor + tensor.substr(0, 12) + "x" + tensor.substr(13) + buffer,
          "of 2 tensors, found 1");
  refused(tensor + "{'side': 'to', 'buffer': 'c', 'mesh': '2', 'fused': ['w', 'w']}",
          "expected parts of these layouts, found w[:,:] in buffer 'b' of the side to on rank 0");
  refused(tensor + "{'side': 'to', 'buffer': 'b', 'mesh': '2', 'fused': ['w']}", "on rank 0");
  refused(tensor + "{'side': 'to', 'buffer': 'b', 'mesh': '1', 'fused': ['w', 'w']}", "on rank 1");
}

TEST_CASE("digests that do not belong together are not gathered") {
  DigestFile file = read_digest_file(kFile, "d.json");
  CHECK_THROWS_WITH(gathered({}), Contains("expected at least one"));
  CHECK_THROWS_WITH(gathered({file, file}),
                    Contains("d.json: expected each part of a rank once, found w[:,:] in buffer "
                             "'b' of the side to of rank 0 again"));
  DigestFile other = file;
  other.tensors[0].rows = 3;
  CHECK_THROWS_WITH(gathered({file, other}), Contains("d.json: expected the tensors and rows"));
}
