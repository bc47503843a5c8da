// SPDX-License-Identifier: BSD-3-Clause
// A text stream line by line, in memory of one line: a file without a newline is refused when its
// first line passes 64 MiB, however long the file is.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace reshard::sim {

class LineReader {
 public:
  // `file` names the stream in messages. Keeps a reference to the stream.
  LineReader(std::istream& in, std::string file);

  // The next line without its end ("\n" or "\r\n"); false at the end of the stream. Throws
  // InputError "FILE:LINE: ..." for a line above 64 MiB and for a stream that fails while it is
  // read.
  bool next(std::string& line);
  // Of the line that next() returned last; 1 is the first.
  std::int64_t line_number() const { return line_number_; }

 private:
  bool refill();

  std::istream& in_;
  std::string file_;
  std::vector<char> block_;
  std::size_t begin_ = 0, end_ = 0;  // unread part of block_
  std::int64_t line_number_ = 0;
};

}  // namespace reshard::sim
