// SPDX-License-Identifier: BSD-3-Clause
// An output stream to an open file descriptor, which the standard library does not have.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

namespace reshard::tools {

// Buffers what is written and passes it on when full or flushed. Does not own the descriptor.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor);
  // errno of the write that failed, else 0. After a failure nothing more is written.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override;
  int sync() override;

 private:
  int descriptor_, error_ = 0;
  std::array<char, 1 << 16> block_;
};

// Writes all that `write` writes, and flushes it. Returns 0, or errno of the write that failed.
template <class Write>
int write_to(int descriptor, Write&& write) {
  DescriptorBuffer buffer(descriptor);
  std::ostream out(&buffer);
  write(out);
  out.flush();
  return buffer.error();
}

}  // namespace reshard::tools
