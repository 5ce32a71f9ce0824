// What the node at the other end of one connection knows of a store's regions. A region is told of
// when it is first used; until the node has agreed, its values travel as any others do.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "transport/native/region_set.h"
#include "transport/native/ring_stream.h"
#include "transport/native/transfer.h"

namespace kvstrata {

class RegionTable final : public TransferOwner {
 public:
  // `rings` carries the descriptors; it outlives this.
  RegionTable(std::shared_ptr<const RegionSet> set, RingStream* rings) noexcept
      : set_(std::move(set)), rings_(rings) {}

  // Whether there may be something to tell the node: the set has changed.
  bool is_stale() const noexcept { return set_->version() != version_; }
  // What the node is to be told before the transfer, or null; again, until there is no more. It is
  // to be submitted.
  Transfer* next_notice(const Transfer& transfer);
  // The same of regions that are no more.
  Transfer* next_farewell();

  // Where in a region that the node knows all of `bytes` lie; a descriptor of another kind if they
  // do not.
  Descriptor find(Bytes bytes) const noexcept;

  void provide_sinks(Transfer&, size_t, size_t) noexcept override {}
  void ended(Transfer& transfer) noexcept override;

 private:
  enum class State : uint8_t {
    New,      // The node has not been told.
    Told,     // It has, and is yet to answer.
    Known,    // It may be named.
    Refused,  // The node does not take it.
    Gone,     // Of the set no more, but the node is yet to be told so.
    Leaving,  // It has been told, and may hold it until its last transfer has ended.
  };
  struct Region {
    Region(RegionMemory its_memory, uint32_t its_id)
        : memory(std::move(its_memory)), id(its_id) {}
    bool contains(Bytes bytes) const noexcept;

    RegionMemory memory;
    uint32_t id;
    State state = State::New;
    std::unique_ptr<Transfer> notice;
  };

  void follow_set();
  Transfer* tell(Region* region);
  Transfer* make_notice(Region* region, Opcode opcode);

  std::shared_ptr<const RegionSet> set_;
  RingStream* rings_;
  uint64_t version_ = 0;
  uint32_t next_id_ = 1;
  std::list<Region> regions_;  // They stay where they are.
};

}  // namespace kvstrata
