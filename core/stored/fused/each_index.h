// SPDX-License-Identifier: BSD-3-Clause
// Buffers that each hold one index of the outermost dim of another buffer.
#pragma once

#include "core/stored/generators.h"
#include "core/stored/stored.h"

namespace reshard {

// Dim 0 of the tensors of `whole` must be outermost in memory. Its name contains "{}", which is
// replaced by the index, counted within the rank or within the tensors. Indices that are padding
// get no buffer.
void add_each(Stored& to, const StoredBuffer& whole, FusedBuffer::Each each);

}  // namespace reshard
