// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/inputs/json_reader.h"
#include "sim/report/json.h"

namespace reshard::sim {

namespace {

constexpr std::string_view kBegin = "reshard.";

// The fields that name an object of a list; those that it has form its key.
constexpr std::array<std::string_view, 11> kNaming{
    "mesh", "from", "to", "planner", "name", "class", "rank", "line", "op", "cause", "collective"};
// Pieces of the critical path have no names to pair them by; the path is compared by cause instead.
constexpr std::array<std::string_view, 2> kNotCompared{"critical_path", "phases"};

template <class List>
bool has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// `of_object`: the unit of the object that the field is in; "measured_ps" is an object of times.
Unit unit_of(std::string_view field, Unit of_object = Unit::Number) {
  if (field.ends_with("bytes_per_s")) return Unit::Rate;
  if (field.ends_with("_ps")) return Unit::Time;
  return field.find("bytes") != std::string_view::npos ? Unit::Bytes : of_object;
}

Json parsed(std::string_view text, const std::string& name) {
  Json json = read_json_or_other<Json>(text, name, kJsonFile);
  if (json.is_discarded() || !json.is_object() || !json.contains("schema") ||
      !json["schema"].is_string() || !json["schema"].get<std::string>().starts_with(kBegin))
    throw InputError(name + ": expected a report printed by reshard with --json, found " +
                     (json.is_discarded() ? "no JSON" : "other JSON"));
  return json;
}

// The kind of "reshard.simulate/1" is "simulate". Reports of `plan` count as `simulate`: they share
// their field names.
std::string kind_of(const Json& json) {
  std::string schema = json["schema"].get<std::string>().substr(kBegin.size());
  std::string kind = schema.substr(0, schema.find('/'));
  return kind == "plan" ? "simulate" : kind;
}

std::optional<Amount> amount_of(const Json* value, Unit unit) {
  if (value == nullptr) return std::nullopt;
  if (std::optional<std::int64_t> integer = integer_in(*value)) return Amount{unit, integer};
  if (value->is_number()) return Amount{unit, std::nullopt, value->get<double>()};
  return std::nullopt;
}

bool is_list_of_objects(const Json* value) {
  return value != nullptr && value->is_array() && !value->empty() && value->front().is_object();
}

std::string plain(const Json* value) {
  if (value == nullptr) return "";
  return value->is_string() ? value->get<std::string>()
                            : value->dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The fields of both objects, those of `a` first.
std::vector<std::string> fields_of(const Json& a, const Json& b) {
  std::vector<std::string> out;
  for (const Json* each : {&a, &b})
    for (const auto& [name, value] : each->items())
      if (!has(out, name)) out.push_back(name);
  return out;
}

const Json* field(const Json& object, const std::string& name) {
  auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

class Comparing {
 public:
  explicit Comparing(Comparison& out) : out_(out) {}

  void objects(const Json& a, const Json& b, const std::string& path, Unit unit) {
    for (const std::string& name : fields_of(a, b)) {
      if (has(kNotCompared, name)) continue;
      const Json *in_a = field(a, name), *in_b = field(b, name);
      std::string here = path.empty() ? name : path + "." + name;
      if (is_list_of_objects(in_a) || is_list_of_objects(in_b))
        lists(in_a, in_b, here);
      else if (is_object(in_a) || is_object(in_b))
        objects(or_empty(in_a), or_empty(in_b), here, unit_of(name, unit));
      else
        values(in_a, in_b, here, unit_of(name, unit));
    }
  }

 private:
  static bool is_object(const Json* value) { return value != nullptr && value->is_object(); }
  static const Json& or_empty(const Json* value) {
    static const Json kEmpty = Json::object();
    return is_object(value) ? *value : kEmpty;
  }

  void values(const Json* a, const Json* b, const std::string& path, Unit unit) {
    ComparedFigure figure{path, amount_of(a, unit), amount_of(b, unit)};
    if (figure.a || figure.b)
      out_.figures.push_back(std::move(figure));
    else if (plain(a) != plain(b))
      out_.texts.push_back({path, plain(a), plain(b)});
  }

  // Each object with its key, made unique by a number if the key occurs more than once.
  static std::vector<std::pair<std::string, const Json*>> keyed(const Json* list) {
    std::vector<std::pair<std::string, const Json*>> out;
    if (!is_list_of_objects(list)) return out;
    std::map<std::string, int> seen;
    for (const Json& object : *list) {
      if (!object.is_object()) continue;
      std::string key;
      for (std::string_view name : kNaming)
        if (const Json* value = field(object, std::string(name));
            value != nullptr && (value->is_string() || value->is_number()))
          fmt::format_to(std::back_inserter(key), "{}{}", key.empty() ? "" : " ", plain(value));
      int place = seen[key]++;
      if (key.empty())
        key = std::to_string(place);
      else if (place > 0)
        key += fmt::format(" ({})", place + 1);
      out.emplace_back(std::move(key), &object);
    }
    return out;
  }

  void lists(const Json* a, const Json* b, const std::string& name) {
    auto of_a = keyed(a), of_b = keyed(b);
    ComparedList list{name,
                      static_cast<std::int64_t>(of_a.size()),
                      static_cast<std::int64_t>(of_b.size()),
                      {},
                      {},
                      {}};
    std::map<std::string_view, const Json*> in_b(of_b.begin(), of_b.end());
    std::set<std::string_view> in_a;
    for (const auto& [key, object] : of_a) {
      in_a.insert(key);
      if (auto other = in_b.find(key); other != in_b.end())
        rows(*object, *other->second, key, list);
      else
        list.only_a.push_back(key);
    }
    for (const auto& [key, object] : of_b)
      if (in_a.count(key) == 0) list.only_b.push_back(key);
    if (list.differing.empty() && list.only_a.empty() && list.only_b.empty()) return;
    std::stable_sort(list.differing.begin(), list.differing.end(), before);
    out_.lists.push_back(std::move(list));
  }

  static void rows(const Json& a, const Json& b, const std::string& key, ComparedList& list) {
    for (const std::string& name : fields_of(a, b)) {
      if (has(kNaming, name)) continue;
      Unit unit = unit_of(name);
      ComparedFigure figure{name, amount_of(field(a, name), unit), amount_of(field(b, name), unit)};
      if ((figure.a || figure.b) && figure.differs()) list.differing.push_back({key, figure});
    }
  }

  static bool before(const ComparedRow& x, const ComparedRow& y) {
    auto unit = [](const ComparedRow& row) {
      return (row.figure.a ? row.figure.a : row.figure.b)->unit;
    };
    auto size = [](const ComparedRow& row) {
      auto of = [](const std::optional<Amount>& amount) { return amount ? amount->value() : 0; };
      return std::abs(of(row.figure.b) - of(row.figure.a));
    };
    return std::tuple(unit(x), -size(x)) < std::tuple(unit(y), -size(y));
  }

  Comparison& out_;
};

}  // namespace

std::string Amount::text() const {
  if (!integer) return fmt::format("{:.4g}", real);
  switch (unit) {
    case Unit::Time:
      return duration_text(*integer);
    case Unit::Bytes:
      return bytes_text(*integer);
    case Unit::Rate:
      return rate_text(*integer);
    case Unit::Number:
      break;
  }
  return std::to_string(*integer);
}

std::optional<double> ComparedFigure::change() const {
  if (!a || !b || a->value() == 0) return std::nullopt;
  return b->value() / a->value() - 1;
}

bool Comparison::differs() const {
  return !texts.empty() || !lists.empty() ||
         std::any_of(figures.begin(), figures.end(),
                     [](const ComparedFigure& figure) { return figure.differs(); });
}

Comparison compare_reports(std::string_view text_a, std::string name_a, std::string_view text_b,
                           std::string name_b) {
  Json a = parsed(text_a, name_a), b = parsed(text_b, name_b);
  if (kind_of(a) != kind_of(b))
    throw InputError(fmt::format("{}: expected a report of '{}' as in {}, found one of '{}'",
                                 name_b, kind_of(a), name_a, kind_of(b)));
  Comparison out;
  out.name_a = std::move(name_a);
  out.name_b = std::move(name_b);
  out.schema_a = a["schema"].get<std::string>();
  out.schema_b = b["schema"].get<std::string>();
  a.erase("schema");
  b.erase("schema");
  Comparing(out).objects(a, b, "", Unit::Number);
  return out;
}

std::string change_text(std::optional<double> change) {
  return change ? fmt::format("{:+.1f} %", *change * 100) : "-";
}

}  // namespace reshard::sim
