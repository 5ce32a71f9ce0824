// Vectors of tests/vectors/: bytes, and what they mean in words
// (tests/unit/transport/golden_vectors.py).
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "transport/native/bytes.h"

namespace kvstrata {

struct GoldenVector {
  std::string name;
  std::vector<std::string> lines;
  std::vector<std::byte> bytes;
};

inline std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string hex(Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::byte each : bytes) {
    text += kDigits[static_cast<size_t>(each) >> 4];
    text += kDigits[static_cast<size_t>(each) & 15];
  }
  return text;
}

inline std::vector<GoldenVector> read_golden_vectors(const std::string& file) {
  auto folder = std::filesystem::path(__FILE__).parent_path() / "../../vectors";
  std::ifstream stream(folder / file);
  REQUIRE_MESSAGE(stream, "cannot read tests/vectors/" << file);
  std::vector<GoldenVector> vectors;
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("vector ", 0) == 0) {
      vectors.push_back({line.substr(7), {}, {}});
    } else if (line.rfind("bytes ", 0) == 0) {
      vectors.back().bytes = from_hex(line.substr(6));
    } else if (!line.empty()) {
      vectors.back().lines.push_back(line);
    }
  }
  REQUIRE_FALSE(vectors.empty());
  return vectors;
}

}  // namespace kvstrata
