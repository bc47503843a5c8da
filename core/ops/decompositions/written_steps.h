// SPDX-License-Identifier: BSD-3-Clause
// Decompositions written in the catalogue, after `:=` in a row of the rule `steps`:
//
//   steps  log_sigmoid_forward  self := zero = new_zeros self size:[] | least = minimum zero self |
//          small = exp (neg (abs self)) | sub.Tensor least (log1p small) -> _ small
//
// Steps are separated by `|`. A step is an operator, its tensors in order, and its other arguments
// by name. Its results can be named (`a =`, `a,b =`); `_` is the first result of the previous step,
// `*` all of them. A step in parentheses can be used as a tensor. After `->` come the results of
// the call; by default, `_`.
//
//   x          a tensor of the call or of a step, or all of a list; absent if absent in the call
//   -          no tensor
//   [x,y]      a list of tensors
//   NAME:VALUE an argument: a number, true, false, none, a list of these, else a text; $ATTR or
//              $ATTR=VALUE as in the next line
//   $ATTR      the call's argument of that name, left out if the call has none; $ATTR=VALUE: with
//              a default
//   ?NAME      before the operator: only if the call has that tensor, or the argument is true
//              (?NAME=true: or left out)
//   !NAME      the opposite
//   reduced x  the mean or the sum of x, or x itself, by the call's argument `reduction`
#pragma once

#include "core/ops/decompositions/steps.h"

namespace reshard {

// Throws CheckFailure for malformed steps, and InputError where the steps themselves do.
void write_steps(Steps& steps, const Operator& op);

}  // namespace reshard
