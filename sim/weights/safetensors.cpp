// SPDX-License-Identifier: BSD-3-Clause
#include "sim/weights/safetensors.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

// The limit in the format's own readers.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr JsonLimits kHeaderLimits{4, std::int64_t{1} << 24, std::size_t{1} << 20};

struct DtypeRow {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};
constexpr DtypeRow kDtypes[] = {
    {"F64", 64, DType::F64},
    {"F32", 32, DType::F32},
    {"F16", 16, DType::F16},
    {"BF16", 16, DType::BF16},
    {"F8_E4M3", 8, DType::F8E4M3},
    {"F8_E5M2", 8, DType::F8E5M2},
    {"I64", 64, DType::I64},
    {"I32", 32, DType::I32},
    {"I16", 16, DType::I16},
    {"I8", 8, DType::I8},
    {"U8", 8, DType::U8},
    {"BOOL", 8, DType::Bool},
    {"C64", 64, DType::C64},
    {"U64", 64, {}},
    {"U32", 32, {}},
    {"U16", 16, {}},
    {"F8_E8M0", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
};

using Header = nlohmann::json;

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& place)
      : file_(file), place_(place) {}

  std::vector<SafetensorsEntry> read() {
    Header header = read_object();
    std::vector<SafetensorsEntry> out;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__")
        check_metadata(value);
      else
        out.push_back(entry_of(name, value));
    }
    check_order(out);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: {}", place_, what));
  }
  [[noreturn]] void fail(const std::string& name, std::string_view field, std::string_view expected,
                         const std::string& found) const {
    fail(fmt::format("tensor {}: {}: expected {}, found {}", reshard::quoted(name, 200), field,
                     expected, found));
  }

  Header read_object() {
    std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
    if (text.size() < 8)
      fail(fmt::format(
          "expected a safetensors file, which begins with the 8 bytes of a length, found {}",
          text.empty() ? "an empty file" : fmt::format("{} bytes", text.size())));
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8; ++i)
      length |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    if (length > kMostHeaderBytes)
      fail(fmt::format("expected a safetensors file, with a header of at most {} bytes, found {}",
                       kMostHeaderBytes, file_look(text)));
    if (length > text.size() - 8)
      fail(fmt::format("expected a header of {} bytes, found the end of the file after {}", length,
                       text.size() - 8));
    std::string_view header = text.substr(8, length);
    if (!header.starts_with('{'))
      fail(fmt::format("expected a header that begins with '{{', found {}",
                       header.empty() ? "none" : reshard::quoted(header.substr(0, 1))));
    data_ = file_.subspan(8 + length);
    Header out = read_json<Header>(header, place_ + ": header", kHeaderLimits);
    if (!out.is_object()) fail("header: expected one JSON object, found " + shown(out));
    return out;
  }

  void check_metadata(const Header& value) const {
    if (!value.is_object())
      fail("__metadata__: expected an object of texts, found " + shown(value));
    for (const auto& [name, text] : value.items())
      if (!text.is_string())
        fail(fmt::format("__metadata__: {}: expected a text, found {}", reshard::quoted(name),
                         shown(text)));
  }

  SafetensorsEntry entry_of(const std::string& name, const Header& value) const {
    constexpr std::string_view kFields[] = {"data_offsets", "dtype", "shape"};
    if (!value.is_object()) fail(name, "header", "an object", shown(value));
    for (const auto& [field, unused] : value.items())
      if (std::find(std::begin(kFields), std::end(kFields), field) == std::end(kFields))
        fail(name, "header", "dtype, shape and data_offsets", reshard::quoted(field));
    for (std::string_view field : kFields)
      if (!value.contains(field)) fail(name, "header", field, "none");
    SafetensorsEntry out;
    out.name = name;
    const DtypeRow& dtype = dtype_of(name, value["dtype"]);
    out.dtype_name = dtype.name;
    out.dtype = dtype.dtype;
    const Header& shape = value["shape"];
    if (!shape.is_array()) fail(name, "shape", "a list of integers from 0", shown(shape));
    for (const Header& extent : shape) {
      auto number = integer_in(extent, 0, kMaxBytes);
      if (!number) fail(name, "shape", "a list of integers from 0", shown(extent));
      out.shape.push_back(*number);
    }
    out.bytes = data_of(name, value["data_offsets"]);
    check_size(out, dtype.bits);
    return out;
  }

  const DtypeRow& dtype_of(const std::string& name, const Header& value) const {
    std::vector<std::string_view> names;
    for (const DtypeRow& row : kDtypes) {
      if (value.is_string() && value.get_ref<const std::string&>() == row.name) return row;
      names.push_back(row.name);
    }
    fail(name, "dtype", fmt::format("one of {}", fmt::join(names, ", ")), shown(value));
  }

  std::span<const std::byte> data_of(const std::string& name, const Header& value) const {
    constexpr std::string_view kWhat = "a list of two offsets, [begin, end]";
    if (!value.is_array() || value.size() != 2) fail(name, "data_offsets", kWhat, shown(value));
    auto begin = integer_in(value[0], 0, kMaxBytes), end = integer_in(value[1], 0, kMaxBytes);
    if (!begin || !end || *begin > *end) fail(name, "data_offsets", kWhat, value.dump());
    if (to_index(*end) > data_.size())
      fail(name, "data_offsets",
           fmt::format("at most the {} bytes of data that follow the header", data_.size()),
           value.dump());
    return data_.subspan(to_index(*begin), to_index(*end - *begin));
  }

  // The size is zero if any extent is zero, whatever the others are.
  void check_size(const SafetensorsEntry& entry, int bits) const {
    bool none = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
    std::optional<std::int64_t> size = none ? 0 : bits;
    for (std::int64_t extent : entry.shape)
      if (size) size = checked_product(*size, extent);
    if (!size || *size % 8 != 0 || to_index(*size / 8) != entry.bytes.size())
      fail(entry.name, "data_offsets",
           fmt::format("the {} bytes of {}[{}]",
                       size ? fmt::to_string(static_cast<double>(*size) / 8) : "over 2^62",
                       entry.dtype_name, fmt::join(entry.shape, ",")),
           fmt::format("{}", entry.bytes.size()));
  }

  // Sorts by offset. A tensor without data comes before the one that begins at the same offset.
  void check_order(std::vector<SafetensorsEntry>& entries) const {
    auto place = [](const SafetensorsEntry& e) {
      return std::tuple(e.bytes.data(), e.bytes.size());
    };
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    const std::byte* end = data_.data();
    for (const SafetensorsEntry& entry : entries) {
      auto begin = entry.bytes.data() - data_.data(), expected = end - data_.data();
      if (begin != expected)
        fail(entry.name, "data_offsets",
             fmt::format("data from {} on, where that of other tensors ends", expected),
             fmt::format("{} from {} on", begin < expected ? "an overlap" : "a gap, data", begin));
      end = entry.bytes.data() + entry.bytes.size();
    }
    if (auto used = to_index(end - data_.data()); used != data_.size())
      fail(fmt::format("expected {} bytes of data, as the header says, found {}", used,
                       data_.size()));
  }

  std::span<const std::byte> file_, data_;
  const std::string& place_;
};

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& place) {
  return HeaderReader(file, place).read();
}

}  // namespace reshard::sim
