// SPDX-License-Identifier: BSD-3-Clause
// Which program wrote a file, by its first bytes.
#include "core/base/file_kinds.h"

#include <string>
#include <utility>

#include <catch2/catch.hpp>

using namespace std::string_literals;

namespace reshard {

TEST_CASE("what a file looks like") {
  const std::pair<std::string, std::string> files[] = {
      {"", "an empty file"},
      {" \n", "an empty file"},
      {"\x1f\x8b\x08\x00\x00"s, "a gzip file; decompress it first (gunzip)"},
      {"\x80\x04\x95\x10\x00"s, "a Python pickle, such as a PyTorch flight recorder dump"},
      {"\x10\x00\x00\x00\x00\x00\x00\x00{\"w\": {}}"s, "a safetensors file"},
      {"PK\x03\x04\x00"s, "a zip archive, such as torch.save writes"},
      {"h\x00"
       "e\x00"
       "l\x00"
       "o\x00"s,
       "UTF-16 text without a byte order mark; save it as UTF-8"},
      {"\x07\x0a\x05"
       "0.0.4\x12\x01\x00is_cpu_op"s,
       "a Chakra execution trace"},
      {"\x01\x02\x03", "a binary file"},
      {"{\n  \"traceEvents\": [\n    {\"ph\": \"X\"}\n  ]\n}\n",
       "a Chrome trace, such as torch.profiler (Kineto) or Perfetto writes"},
      {"{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": []}",
       "a torch.profiler trace (Kineto)"},
      {"[\n {\"name\": \"a\", \"ph\": \"X\", \"ts\": 1}]",
       "a Chrome trace, such as torch.profiler (Kineto) or Perfetto writes"},
      {"{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 1, \"nodes\": []}",
       "a PyTorch execution trace (PARAM, Chakra)"},
      {"[{\"comms\": \"all_reduce\", \"in_msg_size\": 3}]", "a PARAM communication trace"},
      {"{\"version\": \"2.5\", \"pg_config\": {}, \"entries\": []}",
       "a PyTorch flight recorder dump"},
      {"{\"metadata\": {}, \"weight_map\": {\"a\": \"b\"}}", "a safetensors index"},
      {"{\"architectures\": [\"Llama\"]}", "a model's config.json"},
      {"{\"nvbandwidth\": {}}",
       "nvbandwidth -j output; p2pBandwidthLatencyTest's matrices can be read"},
      {"{\"a\": 1}", "some other kind of JSON"},
      {"<system version=\"2\"><cpu/></system>", "an RCCL topology of AMD GPUs"},
      {"<system version=\"1\"><gpu><xgmi/></gpu></system>", "an RCCL topology of AMD GPUs"},
      {"<system version=\"1\"/>", "an NCCL topology"},
      {"<graphs version=\"1\"/>",
       "NCCL graphs (NCCL_GRAPH_DUMP_FILE); the file of NCCL_TOPO_DUMP_FILE can be read"},
      {"<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
       "version=\"2.0\">\n<object type=\"Machine\"/>",
       "an hwloc topology; the file of NCCL_TOPO_DUMP_FILE can be read"},
      {"<!DOCTYPE html>\n<html>", "a web page"},
      {"<a/>", "some other kind of XML"},
      {"node1:49:49 [0] NCCL INFO Bootstrap", "an NCCL log (NCCL_DEBUG=INFO)"},
      {"nvbandwidth Version: v0.5\nRunning device_to_device_memcpy_read_ce",
       "nvbandwidth output; p2pBandwidthLatencyTest's matrices can be read"},
      {"version https://git-lfs.github.com/spec/v1\n",
       "a Git LFS pointer; fetch the file first (git lfs pull)"},
      {"reshard-plan 1\n", "a reshard plan"},
      {"reshard-topology 1\n", "a reshard topology"},
      {"{\"reshard_trace\": 1}\n", "a reshard trace"},
      {"{\n  \"schema\": \"reshard.plan/1\",\n", "a reshard report (--json)"},
  };
  for (const auto& [text, what] : files) {
    CAPTURE(text);
    CHECK(file_look(text) == "what looks like " + what);
  }
  CHECK(file_kind("hello") == nullptr);
  CHECK(file_look("hello\nyou") == "'hello'");
  CHECK(file_look("[1,0]<stdout>: x") == "'[1,0]<stdout>: x'");
  CHECK(file_look("\x1b[0mhello") == "'\\x1b[0mhello'");
}

TEST_CASE("UTF-16 after its byte order mark is read as its text") {
  CHECK(utf8_text("\xff\xfe"
                  "a\x00\n\x00"s) == "a\n");
  CHECK(utf8_text("\xfe\xff\x00"
                  "a\x00\n"s) == "a\n");
  // e with an accent, a euro, a character beyond 16 bits, half of a pair.
  CHECK(utf8_text("\xff\xfe\xe9\x00\xac\x20\x3d\xd8\x00\xde\x00\xd8"s) ==
        "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd");
  CHECK(utf8_text("plain") == "plain");
  CHECK(utf8_text("\xff\xfe"
                  "a"s)
            .empty());
}

}  // namespace reshard
