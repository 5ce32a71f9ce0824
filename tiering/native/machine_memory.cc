#include "tiering/native/machine_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kvstrata {
namespace {

// A file of one number; `missing` where there is none ("max" in cgroup v2 means no limit).
uint64_t read_number(const std::string& path, uint64_t missing) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : missing;
}

// The least limit from the group at `path` up to the root. In a container the path may belong to
// the host's view: levels that are not mounted here are passed over.
uint64_t least_limit(const std::string& mount, std::string path, const char* file) {
  uint64_t limit = UINT64_MAX;
  while (true) {
    limit = std::min(limit, read_number(mount + path + "/" + file, UINT64_MAX));
    size_t slash = path.rfind('/');
    if (slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

uint64_t cgroup_limit_bytes() {
  std::ifstream groups("/proc/self/cgroup");  // Lines of "number:controllers:/path".
  uint64_t limit = UINT64_MAX;
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty()) {  // Version 2.
      limit = std::min(limit, least_limit("/sys/fs/cgroup", path, "memory.max"));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      limit = std::min(limit, least_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

static_assert(kHugePageBytes == 2048 * 1024);
const std::string kHugePageFolder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";

// A setting of transparent huge pages, such as "always [madvise] never": the choice is in brackets.
bool allows(const std::string& setting, std::initializer_list<std::string_view> choices) {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/" + setting);
  std::string line;
  std::getline(file, line);
  return std::ranges::any_of(
      choices, [&](std::string_view choice) { return line.find(choice) != std::string::npos; });
}

}  // namespace

uint64_t memory_limit_bytes() {
  struct sysinfo machine{};
  uint64_t total = UINT64_MAX;
  if (sysinfo(&machine) == 0) total = uint64_t{machine.totalram} * machine.mem_unit;
  return std::min(total, cgroup_limit_bytes());
}

uint64_t huge_page_count() { return read_number(kHugePageFolder + "nr_hugepages", 0); }

uint64_t huge_page_bytes_free() {
  uint64_t free = read_number(kHugePageFolder + "free_hugepages", 0);
  uint64_t promised = read_number(kHugePageFolder + "resv_hugepages", 0);
  return (free - std::min(promised, free)) * kHugePageBytes;
}

bool private_memory_has_huge_pages() { return allows("enabled", {"[always]", "[madvise]"}); }

bool shared_memory_has_huge_pages() {
  return allows("shmem_enabled", {"[always]", "[within_size]", "[advise]", "[force]"});
}

}  // namespace kvstrata
