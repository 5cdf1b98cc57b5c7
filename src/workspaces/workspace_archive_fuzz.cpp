#include "base/assert.hpp"
#include "workspaces/archive_in.hpp"
#include "workspaces/archive_out.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

// Whatever is unpacked remains in its folder and leaves no draft, and what was unpacked can be
// packed again.
namespace berth::workspaces {
namespace {

constexpr std::string_view canary = "nobody writes here";

Limits small() {
  return {.entries_max = 64,
          .bytes_max = 1 << 20,
          .file_bytes_max = 1 << 19,
          .depth_max = 16,
          .growth_free_bytes = 1 << 20};
}

// A folder with a root in it, and next to it a file that must never change.
class Place {
 public:
  Place() {
    BERTH_ASSERT(::mkdtemp(path_.data()) != nullptr);
    top_ = Fd{::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const Fd beside{::openat(top_.get(), "beside", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    BERTH_ASSERT(files::write_at(beside.get(), canary, 0, "beside").has_value());
    reset();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    static_cast<void>(files::remove_beneath(top_.get(), "root", "root", 1000));
    ::unlinkat(top_.get(), "beside", 0);
    ::rmdir(path_.c_str());
  }

  void reset() {
    static_cast<void>(files::remove_beneath(top_.get(), "root", "root", 1000));
    BERTH_ASSERT(::mkdirat(top_.get(), "root", 0700) == 0);
  }
  Confined root() const {
    return Confined{Fd{::openat(top_.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC)},
                    Mounts::refused, small()};
  }
  void check() const {
    const Confined top{Fd{::fcntl(top_.get(), F_DUPFD_CLOEXEC, 0)}};
    const auto entries = top.list("");
    BERTH_ASSERT(entries.has_value() && entries->entries.size() == 2);
    std::string text;
    const auto read = top.read_file("beside", [&](std::string_view piece) {
      text += piece;
      return Result<>{};
    });
    BERTH_ASSERT(read.has_value() && text == canary);
  }

 private:
  std::string path_ = "/dev/shm/berth-fuzz-XXXXXX";
  Fd top_;
};

void check(std::string_view bytes, LinkRule links) {
  static Place place;
  place.reset();
  const Confined root = place.root();
  const ByteSource source = [at = std::size_t{0}, bytes]() mutable -> Result<std::string_view> {
    const std::string_view piece = bytes.substr(at, 777);
    at += piece.size();
    return piece;
  };
  const auto unpacked = archive_in(root, "in", source, {.links = links});
  place.check();
  if (!unpacked) {
    BERTH_ASSERT(!unpacked.error().message.empty() && unpacked.error().code != Errc::bug);
    BERTH_ASSERT(root.list("")->entries.empty());
    return;
  }
  BERTH_ASSERT(root.list("")->entries.size() == 1);
  const ByteSink nowhere = [](std::string_view) { return Result<>{}; };
  BERTH_ASSERT(archive_out(root, "in", nowhere, {.unfit = Unfit::left_out}).has_value());
  place.check();
}

}  // namespace
}  // namespace berth::workspaces

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using berth::workspaces::LinkRule;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  berth::workspaces::check(bytes, LinkRule::inside);
  berth::workspaces::check(bytes, LinkRule::any);
  return 0;
}
