// Inline commands: one line of words, as a person types them into telnet, with Valkey's quoting.
//
// "..." knows \n \r \t \b \a, \xHH and \ before any other byte, which then stands for itself; '...'
// knows \' only. A quote may begin and end within a word. A backslash with a single byte of
// the line behind it escapes nothing. Zero bytes are bytes like others, in which Valkey differs:
// there such a line never ends.
#pragma once

#include <string_view>
#include <vector>

#include "transport/native/bytes.h"
#include "transport/native/resp_arguments.h"

namespace kvstrata {

// Splits `line`, which excludes its end, and appends the words' bytes to `text`, and where they lie
// in it to `words`. False when a quote is not closed. Throws std::bad_alloc.
bool split_inline(std::string_view line, ByteBuffer* text, std::vector<RespPiece>* words);

}  // namespace kvstrata
