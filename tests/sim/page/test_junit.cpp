// SPDX-License-Identifier: BSD-3-Clause
// Tests in JUnit's XML: counted, escaped, and one for each tensor.
#include <catch2/catch.hpp>

#include <sstream>

#include <pugixml.hpp>

#include "sim/check/check_file.h"
#include "sim/page/junit.h"

using namespace reshard;
using namespace reshard::sim;

TEST_CASE("Each tensor of a check is a test") {
  std::istringstream in(R"({"reshard_check": 1}
{"tensor": "a", "shape": [2, 2], "dtype": "bf16"}
{"tensor": "b<&", "shape": [2, 2], "dtype": "bf16"}
{"tensor": "unused", "shape": [2, 2], "dtype": "bf16"}
{"side": "from", "buffer": "ab", "mesh": "1", "fused": ["a", "b<&", "unused"]}
{"side": "to", "buffer": "ab", "mesh": "1", "fused": ["a", "b<&"]}
{"from": {"rank": 0, "tensor": "a"}, "to": {"rank": 0, "tensor": "b<&"}}
{"from": {"rank": 0, "tensor": "a"}, "to": {"rank": 0, "tensor": "a"}}
{"from": {"rank": 0, "buffer": "ab", "offset": 99}, "to": {"rank": 0, "buffer": "ab"}, "count": 1}
)");
  CheckReport report = report_of(check_copies(in, "t.copies"));
  std::vector<JUnitCase> cases = junit_cases(report);
  REQUIRE(cases.size() == 3);
  CHECK(cases[0].failures.size() == 1);
  CHECK((cases[1].name == "a" && cases[1].failures.empty()));
  REQUIRE(cases[2].failures.size() == 1);
  CHECK(cases[2].failures[0] ==
        "wrong tensor: rank 0: b<&[:,:] in 'ab' gets a[:,:] of rank 0; line 7; looks like: what is "
        "read from 'ab' of rank 0 is shifted by -2 rows there");
  pugi::xml_document document;
  REQUIRE(document.load_string(junit_xml("s", cases).c_str()));
  pugi::xml_node suite = document.child("testsuites").child("testsuite");
  CHECK(suite.attribute("tests").as_int() == 3);
  CHECK(suite.attribute("failures").as_int() == 2);
  int failures = 0;
  for (pugi::xml_node each : suite.children("testcase"))
    failures += each.child("failure").empty() ? 0 : 1;
  CHECK(failures == 2);
  CHECK(suite.last_child().attribute("name").value() == std::string("b<&"));
}

TEST_CASE("Each limit of a comparison is a test") {
  std::vector<JUnitCase> cases = junit_cases(
      {{"time>5%", "time>5%: is more", true}, {"bytes>0", "bytes>0: is the same", false}});
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].failures == std::vector<std::string>{"time>5%: is more"});
  CHECK(cases[1].failures.empty());
}
