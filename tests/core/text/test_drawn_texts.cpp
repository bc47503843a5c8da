// SPDX-License-Identifier: BSD-3-Clause
// How the readers of core treat texts that are nearly right stays the same: the complete value of
// an accepted text, and the message with which any other text is refused. Accepted texts are
// written and read back to the same value. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_text "drawn texts*"
//
// rewrites tests/core/text/data/drawn_texts.txt; with RESHARD_DRAWN_TEXTS=FILE every text and its
// result is written to FILE, so that two versions can be compared.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/text/plan_text.h"
#include "core/topology/machine_lines.h"
#include "core/topology/topology_text.h"
#include "tests/core/text/observed_texts.h"
#include "tests/support/halved.h"
#include "tests/support/pinned.h"
#include "tests/support/text_changes.h"

namespace reshard::test {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kPath = "tests/core/text/data/drawn_texts.txt";

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Texts corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Texts out;
  for (const std::filesystem::path& path : paths) out.push_back(file_text(path));
  REQUIRE(!out.empty());
  return out;
}

// ---- the texts to start from

Texts mesh_texts() {
  Texts out = corpus("mesh");
  for (const char* more :
       {"2x3x2", "2*3", "a=2, b=3", "[3,1,2]", "[[[0,4],[2,6]],[[1,5],[3,7]]]", "1x1x1x2x3",
        "DeviceMesh((2, 2), device: 'cuda', stride: (2, 1))",
        "DeviceMesh((dp=2, tp=2), 'cuda', stride=(1, 2))",
        "DeviceMesh(device_type='cuda', mesh=[[4, 5], [6, 7]])",
        "DeviceMesh((x=2, y=1), [[4], [6]])", "DeviceMesh((2,), (2,), 'cuda')",
        "DeviceMesh('cuda', [[0, 1]], [[0, 1]])", "dp=2,tp=2\n4-5, 9,0", "3x2\n5,4,3,2,1,0"})
    out.emplace_back(more);
  return out;
}

Texts placement_texts() {
  Texts out;
  for (const char* text : {"[ Shard( dim = 0 ) , Partial( reduce_op = 'avg' ) ]",
                           "_StridedShard( dim = 0 , sf = 2 ) Shard( 1 )",
                           "S(0)R",
                           "S(0),R",
                           "S0 R",
                           "Shard(0),Replicate()",
                           "[Shard(dim=0), Partial('avg')]",
                           "(Shard(dim=-1), _StridedShard(dim=0, sf=2))",
                           "_S(0,2)S(0)",
                           "_S(1, split_factor=3)R",
                           "P P(max)",
                           "Partial()Partial(reduce_op=min)",
                           "S(0)[1]S(0)[0]",
                           "S(1)[0]S(1)[1]",
                           "Partial(\"sum\")S(1)",
                           "PartitionSpec('a', None)",
                           "PartitionSpec(('b', 'a'))",
                           "P('a', 'b')",
                           "P(None, \"b\")",
                           "P((\"b\",), None)"})
    out.push_back(fmt::format("2\n2\n{}", text));
  for (const char* text :
       {"3\n1\nS(0)[2]RS(0)[0]", "3\n3\nS(2)S(-3)P(avg)", "3\n3\nP(('c', 'a'), None, 'b')",
        "1\n0\nR", "1\n0\nPartial(sum)", "5\n2\nS(0)S(1)RS(0)S(1)", "1\n8\nS(7)",
        "3\n2\n_S(0,2)_S(0,4)S(0)", "3\n1\nS(0)[1]S(0)[0]S(0)[2]"})
    out.emplace_back(text);
  return out;
}

Texts request_texts() {
  Texts out;
  for (const char* text :
       {"4\n\n\n\n8,8\nf32\nS(0)\nS(1)", "2x2\n0-3\n\n\n6,4\nbf16\nS(0)P(sum)\nRS(1)",
        "2x3\n\n3x2\n\n5\ni32\nP(max)S(0)\nS(0)R", "4\n\n2\n4,5\n8\nf16\nR\nP(sum)",
        "2x2\n\n\n\n8,8\nf32\nS(0)P(avg)\nP(sum)R", "dp=2,tp=2\n\n\n\n4\n\nP(product)R\nRS(0)",
        "2x2\n\n4\n\n8\nf64\nP(avg)P(sum)\nS(0)", "2x1x2\n\n\n\n7,3\nf32\nS(0)RS(1)\nP(sum)RP(sum)",
        "2x2\n\n\n\n3\ni8\nP(bxor)P(bxor)\nRP(bxor)", "2\n\n\n\n9\nf32\nR\nP(min)",
        "2x2\n\n\n\n\nc64\nP(sum)P(avg)\nRR",
        "2x2\n3,1,2,0\n2x2\n0-3\n4,4\nbool\nS(0)[1]S(0)[0]\nRS(1)",
        "3x2\n\n\n\n6\nf8e4m3\nS(0)R\nRS(0)", "2x2\n\n\n\n8\nf32\nS(0)P(sum)\nP(sum)P(sum)"})
    out.emplace_back(text);
  return out;
}

Texts topology_texts() {
  Texts out = corpus("topology");
  for (const char* file : {"a100-quad", "gb200-4", "l40s-8"})
    out.push_back(file_text(fmt::format("traces/topologies/{}.topo", file)));
  for (std::string& text : out) {  // comments would take most of the changes
    std::string lines;
    while (!text.empty())
      if (std::string line = take_line(text); !line.empty() && line.front() != '#')
        lines += line + "\n";
    text = lines;
  }
  out.emplace_back(
      "reshard-topology 1\n# all words\nname all\ndevices 6 # of a node\nnodes 2\ncount nodes\n"
      "gpu sm80\ncpu amd\ntransport nccl 2.28\nreduces nvlink\nreduces network\n"
      "port a 5GB/s in 4.5GB/s\nport b 7\nshared host 4GB/s\nshared x 3GB/s\nfabric spine 11GB/s\n"
      "group left 0-2\ngroup right 3 4-5\ngroup ends 0 5\n"
      "route pairs 0-1 2-3 via a.out a.in latency 1us cap 1GB/s transport nvlink class NVB\n"
      "route ends via b.out host b.in latency 2us transport host\n"
      "route left to right via a.out x latency 3us transport pcie class PHB\n"
      "route right left via a.out host latency 0 transport pcie\n"
      "route within via host latency 1234ps transport pcie\n"
      "route between via a.out source.x spine destination.x a.in latency 9us transport network\n");
  out.emplace_back(
      "reshard-topology 1\nname alike\ndevices 3\ncount devices\nport a 5GB/s\nfabric f 1GB/s\n"
      "route within via a.out f a.in latency 1us transport nvlink\n");
  out.emplace_back(
      "reshard-topology 1\nname ring\ndevices 5\nport a 5GB/s\nshared s 9GB/s\ngroup g 0-4\n"
      "route pairs 0-1 1-2 2-3 3-4 4-0 via a.out a.in latency 1us transport nvlink\n"
      "route g via a.out s a.in latency 5us transport pcie\n");
  std::string figures = "reshard-topology 1\nname figures\ndevices 1\nport a 1GB/s\ngpu sm90\n";
  for (const FigureRow& row : figure_rows())
    figures += fmt::format("figure {} {}\n", row.name,
                           figure_text(row.unit, row.least / 2 + row.most / 2));
  out.push_back(figures);
  return out;
}

Texts plan_texts() {
  Texts out = corpus("plan");
  auto add = [&](const char* planner, const RequestTexts& request) {
    static const Topology topology =
        build_topology(parse_topology("reshard-topology 1\nname m\ndevices 16\nport a 5GB/s\n"
                                      "route within via a.out a.in latency 1us transport nvlink\n",
                                      "m"),
                       std::nullopt);
    PlannerInput input;
    input.topology = &topology;
    out.push_back(to_text(find_planner(planner).make(parse_request(request), input)));
  };
  add("rule", {"2x2", "", "", "", "5,6", "bf16", "S(0)S(1)", "RS(0)"});
  add("rule", {"2x2", "3,1,2,0", "", "", "4,4", "f32", "P(avg)S(0)", "RR"});
  add("graph", {"4", "", "", "", "7,3", "f32", "P(sum)", "S(1)"});
  add("p2p", {"2", "", "3", "1-3", "6", "f32", "P(sum)", "S(0)"});
  add("p2p", {"4", "", "", "", "8", "f32", "R", "P(sum)"});
  add("p2p", {"2x2", "", "", "", "4,3,2", "i32", "_S(0,2)S(1)", "S(2)P(sum)"});
  add("hybrid", {"2x3", "", "", "", "6,6", "f16", "S(0)P(max)", "RS(1)"});
  add("p2p", {"3", "", "", "", "", "f64", "P(min)", "R"});
  // Collectives over boxes.
  out.push_back(to_text(with_halved_collectives(parse_plan(out[3], "rule.plan"))));
  out.push_back(to_text(with_halved_collectives(parse_plan(out[0], "all_to_all.plan"))));
  // What the writer leaves out: the number of the only tensor, parts without elements.
  std::string spelled = out[2];
  spelled.insert(spelled.find("temporary 2") + 11, " tensor 0");
  out.push_back(spelled);
  spelled = out[1];
  spelled.insert(spelled.find("step 0"), "temporary 2\n  0: 0,0\n  2-3: 0,0\n");
  out.push_back(spelled);
  // Two tensors of different dims.
  Plan one = plan_p2p(parse_request({"2", "", "", "", "4", "f32", "S(0)", "R"}), {}),
       two = parse_plan(out[2], "rule.plan");
  out.push_back(to_text(join({one, two})));
  out.push_back(to_text(join({two, one})));
  return out;
}

// ---- readers

struct Reader {
  std::string name;
  Texts texts;
  int draws;  // per text
  TextChanges changes;
  std::function<std::string(const std::string& text)> observed;
  std::size_t kept = 0;  // characters at the front that stay as they are
};

std::vector<Reader> readers(Fingerprints& requests, Fingerprints& topologies) {
  const Texts small{"0", "1", "2", "3", "5", "7", "16", "100", "-1"},
      sizes{
          "0", "1", "8", "-1", "4611686018427387904", "4611686018427387905", "9223372036854775808"},
      decimals{"0",
               "1",
               "00",
               "1e3",
               "1.5",
               ".5",
               "5.",
               "1e40",
               "1e41",
               "1e-40",
               "4611686018427387904",
               "1000000",
               "1000001",
               "123456789012345678901234567890",
               "1234567890123456789012345678901",
               "0.0000004",
               "0.0000005",
               "1e-6"},
      ranks{"0", "1", "2", "3", "4", "1048575", "1048576", "1048577", "-1"};
  const Texts units{" ",  "B",  "KB",  "MB",    "GB",    "TB",    "KiB",   "MiB", "GiB",  "TiB",
                    "K",  "M",  "G",   "T",     "k",     "m",     "g",     "B/s", "MB/s", "/s",
                    "us", "ns", "ps",  "ms",    "s",     "GiB/s", "TB/s",  "e",   "E",    "+",
                    "-",  ".",  "nan", "KiB/s", "MiB/s", "KB/s",  "TiB/s", "x",   "GB/s"};
  const Texts quantities{"8GiB",       "6.887e9B/s",  "1.5ms",    "0",         "4096",
                         "64 MB",      "8G",          "12.25us",  "450GB/s",   "2E+3ns",
                         "0.972",      "1e-3s",       "70KiB",    "3TB",       "1.0005MiB",
                         "999999ps",   "16777216B",   "1000000s", "4EiB",      "999.9995ns",
                         "4194304TiB", "0.0625GiB/s", "1e12",     "1.23456789"};
  std::vector<Reader> out{
      {"shape",
       {"32,8192,4096", "0,5", "torch.Size([8, 8])", "", "(8,)", "[2, 3]", "1,2,3,4,5,6,7,8",
        " 7 "},
       120,
       {{",", " ", "[", "]", "(", ")", "torch.Size(", "x", "-"}, sizes},
       observed_shape},
      {"dtype",
       {"f32", "bf16", "torch.float16", "float8_e4m3fn", "i8", "torch.bool", "c64", "uint8",
        "complex64", "int64", "f8e5m2", "double", "half"},
       60,
       {{"torch.", "f", "i", "u", "float", "int", "bool", "e5m2", "bfloat", " ", "_", "F"},
        {"8", "16", "32", "64"}},
       observed_dtype},
      {"operator",
       {"sum", "avg", "min", "max", "product", "prod", "band", "bor", "bxor"},
       20,
       {{"sum", "x", " ", "mean", "uct", "and", "SUM"}, small},
       observed_operator},
      {"bytes", quantities, 60, {units, decimals}, observed_bytes},
      {"rate", quantities, 60, {units, decimals}, observed_rate},
      {"duration", quantities, 60, {units, decimals}, observed_duration},
      {"ratio",
       {"0.972", "1", "1000000", "0.1234567", "12.5"},
       80,
       {{".", "e", "-", "x"}, decimals},
       observed_ratio},
      {"mesh",
       mesh_texts(),
       120,
       {{",", "x", "*", "=", "[", "]", "(", ")", " ", "dp", "\n", "'", "\"", "-", "stride=(2, 1)",
         "mesh_dim_names=('a', 'b')", "mesh=", "device: ", "DeviceMesh("},
        ranks},
       observed_mesh},
      {"placements",
       placement_texts(),
       120,
       {{"S(0)",    "R",    "P",   ",",    " ",   "[0]", "[1]",   "(",        ")",   "[", "]",
         "_S(0,2)", "dim=", "sf=", "None", "'a'", "'",   "Shard", "Partial(", "max", "P("},
        small},
       observed_placements,
       4},
      {"request",
       request_texts(),
       250,
       {{"S(0)", "S(1)", "R", "P(sum)", "P(avg)", "P(max)", "P(product)", "f32", "i32", "bool", ",",
         "x", "-", "\n", "_S(0,2)", "P(band)"},
        {"0", "1", "2", "3", "5", "16", "-1", "4611686018427387904", "1152921504606846976"}},
       [&requests](const std::string& text) { return observed_request(text, requests); }},
      {"topology",
       topology_texts(),
       300,
       {{"within",    "between", "pairs", "to",      "via",  "latency", "cap",
         "transport", "class",   "in",    ".out",    ".in",  "source.", "destination.",
         "pcie",      "host",    "NVL",   "SYS",     "port", "shared",  "fabric",
         "group",     "count",   "nodes", "nothing", " ",    "#",       "-",
         "GB/s",      "us"},
        {"0", "1", "2", "3", "4", "5", "7", "8", "65", "0.5", "1e3", "49", "999", "1000"}},
       [&topologies](const std::string& text) { return observed_topology(text, topologies); }},
      {"plan",
       plan_texts(),
       250,
       {{"S(0)",     "R",      "P(sum)", "b0",    "b1",       "b2",        "copy", "fill",
         "exchange", "reduce", "after",  "axes",  "tensor 1", ":",         ",",    " -> ",
         "; ",       " ",      "  ",     "group", "dim",      "divisor 2", "end"},
        {"0", "1", "2", "3", "4", "5", "8", "16", "4611686018427387904", "1073741825", "-1"}},
       observed_plan}};
  return out;
}

std::ostream* shown() {
  static const char* path = std::getenv("RESHARD_DRAWN_TEXTS");
  static std::ofstream file(path == nullptr ? "" : path);
  return path == nullptr ? nullptr : &file;
}

// "shape 3: 80 of 120, DIGEST": accepted of all.
std::string line_of(const Reader& reader, std::size_t at) {
  Prng prng(digest_of(fmt::format("{} {}", reader.name, at)).low);
  int accepted = 0;
  Hasher hasher;
  for (int draw = 0; draw <= reader.draws; ++draw) {
    const std::string& right = reader.texts[at];
    std::string text = right, observed;
    if (draw > 0)
      text = right.substr(0, reader.kept) + reader.changes.changed(prng, right.substr(reader.kept));
    try {
      observed = reader.observed(text);
      ++accepted;
    } catch (const InputError& error) {
      observed = error.what();
    }
    hasher.add(observed);
    if (shown() != nullptr) *shown() << "---- " << text << "\n---> " << observed << '\n';
  }
  return fmt::format("{} {}: {} of {}, {}", reader.name, at, accepted, reader.draws + 1,
                     hasher.digest().hex().substr(0, 16));
}

}  // namespace

TEST_CASE("drawn texts are read or refused as they were") {
  Fingerprints requests, topologies;
  std::vector<Reader> all = readers(requests, topologies);
  std::vector<std::pair<const Reader*, std::size_t>> lines;
  for (const Reader& reader : all)
    for (std::size_t at = 0; at < reader.texts.size(); ++at) lines.emplace_back(&reader, at);
  check_lines(kPath, lines.size(),
              [&](std::size_t i) { return line_of(*lines[i].first, lines[i].second); });
}

}  // namespace reshard::test
