// What the node at the other end of one connection knows of a store's regions. It is told of one
// when that is first used; until it has agreed, values travel as they do without.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "transport/native/region_set.h"
#include "transport/native/ring_stream.h"
#include "transport/native/transfer.h"

namespace kvstrata {

class RegionTable final : public TransferOwner {
 public:
  // `rings`, which outlives this, takes the descriptors along.
  RegionTable(std::shared_ptr<const RegionSet> set, RingStream* rings) noexcept
      : set_(std::move(set)), rings_(rings) {}

  // What the node is to be told now, by a transfer to be submitted; null if there is nothing more.
  // `of`: of the regions that it uses. The other: of those that were closed.
  Transfer* next_notice(const Transfer& of, uint64_t bytes_min);
  Transfer* next_farewell();

  // True if all of `bytes` lie in a region that the node knows; `descriptor` then says where.
  bool find(Bytes bytes, Descriptor* descriptor) const noexcept;

  void provide_sinks(Transfer&, size_t, size_t) noexcept override {}
  void ended(Transfer& transfer) noexcept override;

 private:
  enum class State : uint8_t {
    New,      // The node has not been told.
    Told,     // It has, and is yet to answer.
    Known,    // Its memory may be named.
    Refused,  // The node does not take it.
    Leaving,  // The node has been told to forget it.
    Gone,     // It has.
  };
  struct Entry {
    std::shared_ptr<Region> region;
    uint32_t id;
    State state = State::New;
    std::unique_ptr<Transfer> notice;
  };

  void follow_set();
  Entry* find_new(Bytes bytes) noexcept;
  Transfer* make_notice(Entry* entry, Opcode opcode);

  std::shared_ptr<const RegionSet> set_;
  RingStream* rings_;
  uint64_t version_ = 0;    // Of the set, when it was last looked at.
  bool is_settled_ = true;  // None is closed that the node still knows.
  uint32_t next_id_ = 1;
  std::list<Entry> entries_;  // They stay where they are.
};

}  // namespace kvstrata
