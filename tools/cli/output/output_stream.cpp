// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/output/output_stream.h"

#include <unistd.h>

#include <cerrno>

namespace reshard::tools {

DescriptorBuffer::DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
  setp(block_.data(), block_.data() + block_.size());
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type next) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(next, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(next);
    pbump(1);
  }
  return traits_type::not_eof(next);
}

int DescriptorBuffer::sync() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    ssize_t written = ::write(descriptor_, from, static_cast<std::size_t>(pptr() - from));
    if (written >= 0)
      from += written;
    else if (errno != EINTR)
      error_ = errno;
  }
  setp(block_.data(), block_.data() + block_.size());
  return error_ == 0 ? 0 : -1;
}

}  // namespace reshard::tools
