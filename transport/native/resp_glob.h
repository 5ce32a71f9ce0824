// Patterns of keys, as KEYS and SCAN take them, with Valkey's meaning down to its corners.
//
// '*' stands for any bytes, '?' for any one, [a-c] and [^a-c] for one of a class, and '\' takes the
// meaning off what follows.
//   - A class that is not closed ends with the pattern; ']' closes one at once: [] matches nothing.
//   - A range may be the wrong way round. Its bytes compare as signed.
//   - Between the brackets, what '\' quotes begins no range, but a '\' may end one.
//   - No text at all matches "*", but not "**".
#pragma once

#include "transport/native/bytes.h"

namespace kvstrata {

// Takes time in the product of the lengths at most, and no memory.
bool glob_matches(Bytes pattern, Bytes text) noexcept;

}  // namespace kvstrata
