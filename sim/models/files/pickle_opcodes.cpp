// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/pickle_opcodes.h"

#include <string_view>

#include <fmt/core.h>

namespace reshard::sim {
namespace {

struct Row {
  unsigned char opcode;
  std::string_view name;
};
constexpr Row kNotRead[] = {
    {'2', "DUP"},
    {'I', "INT"},
    {'L', "LONG"},
    {'F', "FLOAT"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {'d', "DICT"},
    {'l', "LIST"},
    {'g', "GET"},
    {'p', "PUT"},
    {'i', "INST"},
    {'o', "OBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

}  // namespace

std::string opcode_name(unsigned char opcode) {
  for (const Row& row : kNotRead)
    if (row.opcode == opcode) return fmt::format("opcode {}", row.name);
  return fmt::format("byte {:#04x}", static_cast<unsigned>(opcode));
}

}  // namespace reshard::sim
