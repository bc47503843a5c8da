// SPDX-License-Identifier: BSD-3-Clause
// Decompositions that are written in the catalogue, behind `:=` in a row of the rule `steps`:
//
//   steps  log_sigmoid_forward  self := zero = new_zeros self size:[] | least = minimum zero self |
//          small = exp (neg (abs self)) | sub.Tensor least (log1p small) -> _ small
//
// Steps are parted by `|`: an operator, its tensors in order, and its other arguments by name. What
// a step makes may be named (`a =`, `a,b =`; `_` is the first of what the step before made, `*` all
// of it); where one tensor is asked for, a step in parentheses may stand. Behind `->` is what the
// call gives; left out, `_`.
//
//   x          a tensor of the call or of a step, or all of a list; absent where the call has none
//   -          no tensor
//   [x,y]      a list of tensors
//   NAME:VALUE an argument: a number, true, false, none, a list of these, else a text; $ATTR or
//              $ATTR=VALUE as in the next line
//   $ATTR      the call's argument of that name, left out where it has none; $ATTR=VALUE: else this
//   ?NAME      before the operator: only where the call has that tensor, or the argument is true
//              (?NAME=true: or left out)
//   !NAME      only where not
//   reduced x  the mean, the sum or x itself, as the call's argument `reduction` says
#pragma once

#include "core/ops/decompositions/steps.h"

namespace reshard {

// Throws CheckFailure for what is written badly, InputError as the steps do.
void write_steps(Steps& steps, const Operator& op);

}  // namespace reshard
