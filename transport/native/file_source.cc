#include "transport/native/file_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kvstrata {

FileSource::~FileSource() { ::close(fd_); }

void FileSource::read(uint64_t offset, MutableBytes sink) const noexcept {
  while (!sink.empty()) {
    ssize_t count = ::pread(fd_, sink.data(), sink.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    offset += static_cast<uint64_t>(count);
    sink = sink.subspan(static_cast<size_t>(count));
  }
  std::ranges::fill(sink, std::byte{0});
}

}  // namespace kvstrata
