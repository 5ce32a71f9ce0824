#include "transport/native/region_table.h"

#include <algorithm>

#include "store/limits.h"

namespace kvstrata {

bool RegionTable::Region::contains(Bytes bytes) const noexcept {
  return bytes.data() >= memory->data() &&
         bytes.data() + bytes.size() <= memory->data() + memory->size();
}

// A region that was told of and is gone is kept until the node has forgotten it.
void RegionTable::follow_set() {
  version_ = set_->version();
  std::vector<RegionMemory> all = set_->all();
  for (Region& region : regions_) {
    bool stays = std::erase(all, region.memory) != 0;
    if (stays) continue;
    if (region.state == State::Known) region.state = State::Gone;
    if (region.state == State::Told) continue;  // Until it is answered.
  }
  std::erase_if(regions_, [&](const Region& region) {
    bool known = region.state == State::New || region.state == State::Refused;
    return known && !set_->contains(region.memory);
  });
  for (RegionMemory& memory : all) regions_.emplace_back(std::move(memory), next_id_++);
}

}  // namespace kvstrata
