#include "store/native/resp_client.h"

#include <algorithm>
#include <string_view>

namespace kvstrata {

bool is_showable(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char byte) { return byte >= '!' && byte <= '~'; });
}

}  // namespace kvstrata
