// SPDX-License-Identifier: BSD-3-Clause
#include "tools/capi/guard.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/base/ids.h"
#include "core/base/printable.h"

namespace reshard::capi {
namespace {

// Plain memory, so that storing a text cannot fail and the end of a thread costs nothing; longer
// texts are truncated.
thread_local std::array<char, 4096> last_error{};

// Stores valid UTF-8, whatever text of a caller `what` contains.
std::int32_t fail(std::int32_t code, std::string_view what) noexcept {
  std::size_t length = 0;
  while (!what.empty()) {
    auto [bytes, character] = first_character(what);
    std::size_t taken = std::max<std::size_t>(bytes, 1);
    if (length + taken >= last_error.size()) break;
    bool shows = bytes > 0 && (character >= 0x20 || character == '\n') && character != 0x7F;
    if (shows)
      std::copy_n(what.data(), taken, last_error.data() + length);
    else
      std::fill_n(last_error.data() + length, taken, '?');
    length += taken;
    what.remove_prefix(taken);
  }
  last_error[length] = '\0';
  return code;
}

}  // namespace

std::int32_t code_of_current_exception() noexcept {
  try {
    throw;
  } catch (const NotHeld& error) {
    return fail(RESHARD_FINDINGS, error.what());
  } catch (const InputError& error) {
    return fail(RESHARD_INPUT_ERROR, error.what());
  } catch (const BackendError& error) {
    return fail(RESHARD_BACKEND_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return fail(RESHARD_BACKEND_ERROR, "out of memory");
  } catch (const std::exception& error) {
    return fail(RESHARD_CHECK_FAILURE, error.what());
  } catch (...) {
    return fail(RESHARD_CHECK_FAILURE, "an exception of an unknown type");
  }
}

const char* last_error_text() noexcept { return last_error.data(); }

void require_struct_size(std::uint32_t size, std::size_t least, const char* name) {
  if (size < least || size > kMaxStructSize)
    throw InputError(std::string(name) + ": expected struct_size to be the size of the struct, " +
                     std::to_string(least) + " or more, found " + std::to_string(size));
}

void give_text(const std::string& from, char** text, std::int64_t* text_bytes) {
  given(text, "text");
  given(text_bytes, "text_bytes");
  char* copy = static_cast<char*>(std::malloc(from.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, from.c_str(), from.size() + 1);
  *text = copy;
  *text_bytes = static_cast<std::int64_t>(from.size());
}

std::size_t checked_index(std::int64_t index, std::size_t count, const char* name) {
  if (index < 0 || to_index(index) >= count)
    throw InputError(std::string(name) + ": expected a number from 0 to less than " +
                     std::to_string(count) + ", found " + std::to_string(index));
  return to_index(index);
}

}  // namespace reshard::capi
