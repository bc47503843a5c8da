// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/catalogue/other_names.h"

namespace reshard {
namespace {

struct OtherName {
  std::string_view other, usual;
};

constexpr OtherName kOthers[]{
    {"__and__", "bitwise_and"},
    {"__iand__", "bitwise_and_"},
    {"__ior__", "bitwise_or_"},
    {"__or__", "bitwise_or"},
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"concat", "cat"},
    {"concatenate", "cat"},
    {"divide", "div"},
    {"fix", "trunc"},
    {"ger", "outer"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_matmul", "matmul"},
    {"multiply", "mul"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"special_digamma", "digamma"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_erfinv", "erfinv"},
    {"special_exp2", "exp2"},
    {"special_expit", "sigmoid"},
    {"special_expm1", "expm1"},
    {"special_gammaln", "lgamma"},
    {"special_i0", "i0"},
    {"special_log1p", "log1p"},
    {"special_logit", "logit"},
    {"special_logsumexp", "logsumexp"},
    {"special_psi", "digamma"},
    {"special_round", "round"},
    {"special_sinc", "sinc"},
    {"subtract", "sub"},
    {"true_divide", "div"},
};

}  // namespace

std::string usual_name(std::string_view name) {
  std::size_t end = name.find('.');
  std::string_view base = name.substr(0, end);
  std::string rest(end == std::string_view::npos ? std::string_view() : name.substr(end));
  bool in_place = base.ends_with('_') && !base.starts_with("__");
  if (in_place) base.remove_suffix(1);
  for (const OtherName& each : kOthers)
    if (each.other == base) return std::string(each.usual) + (in_place ? "_" : "") + rest;
  return {};
}

}  // namespace reshard
