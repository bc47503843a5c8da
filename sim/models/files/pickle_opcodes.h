// SPDX-License-Identifier: BSD-3-Clause
// The opcodes of Python's pickles, named as in Python's module pickletools.
#pragma once

#include <string>

namespace reshard::sim {

// The opcodes that the reader supports.
namespace op {
inline constexpr unsigned char kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kNone = 'N',
                               kBinInt = 'J', kBinInt1 = 'K', kBinInt2 = 'M', kBinFloat = 'G',
                               kBinUnicode = 'X', kBinBytes = 'B', kShortBinBytes = 'C',
                               kEmptyList = ']', kAppend = 'a', kAppends = 'e', kEmptyTuple = ')',
                               kTuple = 't', kEmptyDict = '}', kSetItem = 's', kSetItems = 'u',
                               kBinGet = 'h', kLongBinGet = 'j', kBinPut = 'q', kLongBinPut = 'r',
                               kGlobal = 'c', kReduce = 'R', kBuild = 'b', kProto = 0x80,
                               kNewObject = 0x81, kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87,
                               kNewTrue = 0x88, kNewFalse = 0x89, kLong1 = 0x8a, kLong4 = 0x8b,
                               kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d, kBinBytes8 = 0x8e,
                               kStackGlobal = 0x93, kMemoize = 0x94, kFrame = 0x95,
                               kByteArray8 = 0x96;
}  // namespace op

// An opcode that it does not support: "opcode INST", or the number if no such opcode exists.
std::string opcode_name(unsigned char opcode);

}  // namespace reshard::sim
