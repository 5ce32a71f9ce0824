// What a node knows of a Valkey client beyond its connection: most clients never say it.
#pragma once

#include <string>

namespace kvstrata {

struct RespClient {
  std::string name;
  std::string library_name;
  std::string library_version;
  bool no_evict = false;
};

// A name or version may hold what can be shown: no blanks, no line ends.
bool is_showable(std::string_view text) noexcept;

}  // namespace kvstrata
