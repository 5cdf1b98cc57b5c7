#include "images/blob.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace berth::images {
namespace {

constexpr std::size_t blob_read_bytes = 256 << 10;

Result<Digests> digests_of(files::Content& content, Blob& blob) {
  BERTH_DO(content.drain());
  Digests digests{.stored = blob.digest(), .content = {}};
  digests.content = content.digest().value_or(digests.stored);
  return digests;
}

}  // namespace

Blob::Blob(int fd, std::string name, std::uint64_t bytes_max, int stop)
    : fd_(fd),
      stop_(stop),
      name_(std::move(name)),
      bytes_max_(bytes_max),
      buffer_(blob_read_bytes) {}

// A pipe may deliver nothing for any length of time.
Result<> Blob::wait() const {
  if (stop_ < 0) return {};
  std::array<pollfd, 2> ends{
      {{.fd = fd_, .events = POLLIN, .revents = 0}, {.fd = stop_, .events = POLLIN, .revents = 0}}};
  while (::poll(ends.data(), ends.size(), -1) < 0) {
    if (errno != EINTR) return files::store_failure("wait for", name_, errno);
  }
  return ends[1].revents == 0 ? Result<>{} : files::interrupted();
}

Result<std::string_view> Blob::next() {
  BERTH_DO(wait());
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data(), buffer_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return files::store_failure("read", name_, errno);
  const std::string_view bytes{buffer_.data(), static_cast<std::size_t>(got)};
  bytes_ += bytes.size();
  if (bytes_ > bytes_max_) {
    return fail(Errc::image_invalid,
                name_ + ": is larger than " + std::to_string(bytes_max_) + " bytes");
  }
  hash_.add(bytes);
  return bytes;
}

Result<> Blob::drain() {
  while (true) {
    BERTH_TRY(const std::string_view bytes, next());
    if (bytes.empty()) return {};
  }
}

Result<Digests> unpack(Blob& blob, files::ArchiveForm form, files::TreeWriter& into) {
  const files::TarOptions options{
      .name = blob.name(), .rules = files::Rules::image, .form = form, .limits = into.limits()};
  const files::ByteSource source = [&blob] { return blob.next(); };
  BERTH_TRY(files::Content content, files::Content::open(source, options));
  BERTH_TRY(files::TarReader reader, files::TarReader::open(content));
  BERTH_DO(into.put_all(reader, form));
  return digests_of(content, blob);
}

Result<std::string> content_digest(Blob& blob, const files::Limits& limits) {
  const files::TarOptions options{
      .name = blob.name(), .rules = files::Rules::image, .limits = limits};
  const files::ByteSource source = [&blob] { return blob.next(); };
  BERTH_TRY(files::Content content, files::Content::open(source, options));
  BERTH_TRY(Digests digests, digests_of(content, blob));
  return std::move(digests.content);
}

}  // namespace berth::images
