#pragma once

#include "support/temporary_folder.hpp"
#include "workspaces/confined.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

namespace berth::tests {

// A root, and beside it what no archive may touch.
class ArchiveFixture : public testing::Test {
 protected:
  ArchiveFixture() {
    std::filesystem::create_directory(root_);
    std::filesystem::create_directory(outside_);
    put(outside_ + "/secret", "secret");
  }
  ~ArchiveFixture() override {
    EXPECT_EQ(content(outside_ + "/secret"), "secret");
    EXPECT_EQ(described(outside_).size(), 1U);
  }

  static workspaces::Confined open(const std::string& folder, workspaces::Limits limits = {}) {
    return workspaces::Confined{Fd{::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)},
                                workspaces::Mounts::refused, limits};
  }
  static void put(const std::string& path, std::string_view text) {
    std::ofstream{path, std::ios::binary} << text;
  }

  static std::string content(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  // The bytes must outlive the source.
  static workspaces::ByteSource pieces_of(const std::string& bytes) {
    return [&bytes, at = std::size_t{0}]() mutable -> Result<std::string_view> {
      const std::string_view piece = std::string_view{bytes}.substr(at, 1000);
      at += piece.size();
      return piece;
    };
  }

  static workspaces::ByteSink into(std::string& bytes) {
    return [&bytes](std::string_view piece) {
      bytes += piece;
      return Result<>{};
    };
  }

  // A description of a tree: for each path its type and mode, its time, and its content.
  static std::map<std::string, std::string> described(const std::string& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
      struct stat status{};
      EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
      std::string text = std::to_string(status.st_mode) + " " +
                         std::to_string(status.st_mtim.tv_sec) + "." +
                         std::to_string(status.st_mtim.tv_nsec) + " ";
      if (S_ISLNK(status.st_mode)) text += std::filesystem::read_symlink(entry.path()).string();
      if (S_ISREG(status.st_mode)) text += content(entry.path());
      all[entry.path().string().substr(folder.size() + 1)] = text;
    }
    return all;
  }

  static std::string compressed(const std::string& bytes, int (*add_filter)(::archive*)) {
    std::string out(bytes.size() + 65536, '\0');
    std::size_t used = 0;
    ::archive* raw = ::archive_write_new();
    add_filter(raw);
    ::archive_write_set_format_raw(raw);
    ::archive_write_set_bytes_in_last_block(raw, 1);
    ::archive_write_open_memory(raw, out.data(), out.size(), &used);
    ::archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, "raw");
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_write_header(raw, entry);
    ::archive_write_data(raw, bytes.data(), bytes.size());
    ::archive_entry_free(entry);
    ::archive_write_close(raw);
    ::archive_write_free(raw);
    out.resize(used);
    return out;
  }
  std::string in(const std::string& name) const { return root_ + "/" + name; }

  const tests::TemporaryFolder folder_;
  const std::string root_ = folder_.file("root");
  const std::string outside_ = folder_.file("outside");
};

}  // namespace berth::tests
