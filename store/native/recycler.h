// Objects that are used again instead of being freed: they keep the memory that they have grown.
#pragma once

#include <memory>
#include <vector>

namespace kvstrata {

// Owns all that it ever made. For one thread.
template <typename Object>
class Recycler {
 public:
  Object* take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Object>());
      free_.push_back(all_.back().get());
    }
    Object* object = free_.back();
    free_.pop_back();
    return object;
  }
  void give_back(Object* object) { free_.push_back(object); }
  size_t free_count() const noexcept { return free_.size(); }

 private:
  std::vector<Object*> free_;
  std::vector<std::unique_ptr<Object>> all_;
};

}  // namespace kvstrata
