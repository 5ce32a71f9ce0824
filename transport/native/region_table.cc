#include "transport/native/region_table.h"

#include <algorithm>

namespace kvstrata {

void RegionTable::follow_set() {
  if (version_ == set_->version()) return;
  version_ = set_->version();
  is_settled_ = false;
  for (std::shared_ptr<Region>& region : set_->all()) {
    bool is_new = std::ranges::find(entries_, region, &Entry::region) == entries_.end();
    if (is_new) entries_.push_back({std::move(region), next_id_++, State::New, nullptr});
  }
}

Transfer* RegionTable::next_notice(const Transfer& of, uint64_t bytes_min) {
  follow_set();
  if (entries_.empty()) return nullptr;
  for (const TransferItem& item : of.items) {
    Bytes memory = opcode_reads(of.opcode) ? Bytes(item.sink) : item.source;
    Entry* entry = memory.size() > bytes_min ? find_new(memory) : nullptr;
    if (entry == nullptr) continue;
    // Without room in the socket it is told of with a transfer to come.
    if (!rings_->send_descriptor(entry->region->fd())) return nullptr;
    entry->state = State::Told;
    return make_notice(entry, Opcode::AddRegion);
  }
  return nullptr;
}

Transfer* RegionTable::next_farewell() {
  follow_set();
  if (is_settled_) return nullptr;
  std::erase_if(entries_, [](const Entry& entry) {
    bool unknown = entry.state == State::New || entry.state == State::Refused;
    return entry.state == State::Gone || (unknown && entry.region->is_closed());
  });
  for (Entry& entry : entries_) {
    if (entry.state != State::Known || !entry.region->is_closed()) continue;
    entry.state = State::Leaving;
    return make_notice(&entry, Opcode::RemoveRegion);
  }
  // Those that it was told of just now are told off when it has answered.
  is_settled_ =
      std::ranges::none_of(entries_, [](const Entry& entry) { return entry.region->is_closed(); });
  return nullptr;
}

RegionTable::Entry* RegionTable::find_new(Bytes bytes) noexcept {
  auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.region->contains(bytes); });
  return found != entries_.end() && found->state == State::New ? &*found : nullptr;
}

Transfer* RegionTable::make_notice(Entry* entry, Opcode opcode) {
  entry->notice = std::make_unique<Transfer>(this, opcode);
  entry->notice->items.emplace_back();
  entry->notice->entry_flags = kRegionRead | kRegionWrite;
  entry->notice->region.kind = static_cast<uint8_t>(DescriptorKind::Region);
  entry->notice->region.rkey = entry->id;
  entry->notice->region.length = entry->region->bytes().size();
  return entry->notice.get();
}

bool RegionTable::find(Bytes bytes, Descriptor* descriptor) const noexcept {
  auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.state == State::Known && entry.region->contains(bytes);
  });
  if (found == entries_.end()) return false;
  descriptor->kind = static_cast<uint8_t>(DescriptorKind::Region);
  descriptor->rkey = found->id;
  descriptor->address = static_cast<uint64_t>(bytes.data() - found->region->bytes().data());
  return true;
}

void RegionTable::ended(Transfer& transfer) noexcept {
  auto entry =
      std::ranges::find(entries_, &transfer, [](const Entry& each) { return each.notice.get(); });
  bool took = transfer.items.front().status == Status::Ok;
  if (transfer.opcode == Opcode::RemoveRegion) {
    entry->state = State::Gone;
  } else {
    entry->state = took ? State::Known : State::Refused;
  }
}

}  // namespace kvstrata
