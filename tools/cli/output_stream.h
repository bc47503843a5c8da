// SPDX-License-Identifier: BSD-3-Clause
// A stream into an open file, which the standard library has not.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

namespace reshard::tools {

// Collects what is written and hands it on when it is full or flushed. Owns nothing.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor);
  // Of the write that failed: errno, else 0. Nothing is written after it.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override;
  int sync() override;

 private:
  int descriptor_, error_ = 0;
  std::array<char, 1 << 16> block_;
};

// All that `write` writes, flushed: 0, or errno of the write that failed.
template <class Write>
int write_to(int descriptor, Write&& write) {
  DescriptorBuffer buffer(descriptor);
  std::ostream out(&buffer);
  write(out);
  out.flush();
  return buffer.error();
}

}  // namespace reshard::tools
