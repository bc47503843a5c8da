// SPDX-License-Identifier: BSD-3-Clause
#include "sim/inputs/gzip_input.h"

#include <zlib.h>

#include <streambuf>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;
constexpr int kFirstByte = 0x1f;  // RFC 1952, 2.3.1; no text begins with it
constexpr int kGzipOnly = 16 + MAX_WBITS;

class Unpacking : public std::streambuf {
 public:
  Unpacking(std::istream& in, std::string name)
      : in_(in), name_(std::move(name)), packed_(kBlock), text_(kBlock) {
    if (inflateInit2(&state_, kGzipOnly) != Z_OK)
      throw InputError(fmt::format("{}: not enough memory to unpack it", name_));
  }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;
  ~Unpacking() override { inflateEnd(&state_); }

 protected:
  int_type underflow() override {
    state_.next_out = reinterpret_cast<Bytef*>(text_.data());
    state_.avail_out = static_cast<uInt>(text_.size());
    while (state_.avail_out == text_.size()) {
      if (state_.avail_in == 0 && !refill()) {
        if (ended_) return traits_type::eof();
        throw InputError(
            fmt::format("{}: expected a whole gzip file, found its end missing", name_));
      }
      if (ended_) {  // another one follows
        inflateReset(&state_);
        ended_ = false;
      }
      int result = inflate(&state_, Z_NO_FLUSH);
      ended_ = result == Z_STREAM_END;
      if (result != Z_OK && result != Z_STREAM_END)
        throw InputError(fmt::format("{}: expected a gzip file, found a damaged one ({})", name_,
                                     state_.msg != nullptr ? state_.msg : "no reason given"));
    }
    setg(text_.data(), text_.data(), text_.data() + (text_.size() - state_.avail_out));
    return traits_type::to_int_type(*gptr());
  }

 private:
  bool refill() {
    in_.read(packed_.data(), static_cast<std::streamsize>(packed_.size()));
    state_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    state_.avail_in = static_cast<uInt>(in_.gcount());
    if (in_.bad())
      throw InputError(
          fmt::format("{}: expected a readable file, found an error while reading", name_));
    return state_.avail_in > 0;
  }

  std::istream& in_;
  std::string name_;
  std::vector<char> packed_, text_;
  z_stream state_{};
  bool ended_ = false;  // the file that was begun; others may follow
};

}  // namespace

void with_unpacked(std::istream& in, const std::string& name,
                   const std::function<void(std::istream&)>& read) {
  if (in.peek() != kFirstByte) {
    if (in.eof()) in.clear();  // an empty file is one that can be read
    return read(in);
  }
  Unpacking unpacking(in, name);
  std::istream text(&unpacking);
  text.exceptions(std::ios::badbit);  // so that what the buffer throws comes through
  read(text);
}

}  // namespace reshard::sim
