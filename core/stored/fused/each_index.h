// SPDX-License-Identifier: BSD-3-Clause
// A buffer for each index of another one's outermost dim.
#pragma once

#include "core/stored/generators.h"
#include "core/stored/stored.h"

namespace reshard {

// `whole` has dim 0 of its tensors outermost, and "{}" in its name, which becomes the index there
// or in the tensors. Indices that are padding get no buffer.
void add_each(Stored& to, const StoredBuffer& whole, FusedBuffer::Each each);

}  // namespace reshard
