// Doubly linked lists of numbered things, whose links lie with the things: nothing is allocated to
// list one.
//
// `links` maps a number to the ListLinks& of that thing. A thing is on one list at most.
#pragma once

#include <cstdint>

namespace kvstrata {

constexpr uint32_t kListEnd = UINT32_MAX;

struct ListLinks {
  uint32_t previous = kListEnd;
  uint32_t next = kListEnd;
};

template <typename LinksOf>
void list_push_front(uint32_t* head, uint32_t item, LinksOf&& links) noexcept {
  links(item) = {kListEnd, *head};
  if (*head != kListEnd) links(*head).previous = item;
  *head = item;
}

template <typename LinksOf>
void list_remove(uint32_t* head, uint32_t item, LinksOf&& links) noexcept {
  ListLinks removed = links(item);
  if (removed.next != kListEnd) links(removed.next).previous = removed.previous;
  if (removed.previous != kListEnd) {
    links(removed.previous).next = removed.next;
  } else {
    *head = removed.next;
  }
}

}  // namespace kvstrata
