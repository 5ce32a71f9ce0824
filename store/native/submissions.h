// What an event loop has submitted to a connection and has not been told the end of.
#pragma once

#include <list>
#include <utility>

namespace kvstrata {

// Items are operations, or stand for them: they know whether they have finished(), and whether they
// are unsent().
//
// Operations are sent in the order of their submission. So behind the first that is unsent none can
// have been answered, and a look costs no more than what the node has been asked, which its credits
// bound, however many wait behind. One that failed without being sent is found once those before it
// have been sent.
template <typename Item>
class Submissions {
 public:
  void add(Item item) { items_.push_back(std::move(item)); }

  // Takes out those that have finished and hands each to `take`, in the order of their submission.
  template <typename Take>
  void take_finished(Take take) {
    for (auto item = items_.begin(); item != items_.end();) {
      if (item->finished()) {
        take(*item);
        item = items_.erase(item);
      } else if (item->unsent()) {
        return;
      } else {
        ++item;
      }
    }
  }

 private:
  std::list<Item> items_;
};

}  // namespace kvstrata
