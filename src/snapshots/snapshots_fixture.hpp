#pragma once

#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "snapshots/git/repository.hpp"
#include "snapshots/snapshot.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace berth::snapshots {

// Succeeded, or the test says why not.
#define SNAPSHOT_OK(result) ASSERT_TRUE(result.has_value()) << result.error().message

class SnapshotsTest : public testing::Test {
 protected:
  SnapshotsTest() {
    std::string pattern = "/tmp/berth-snapshots-XXXXXX";
    home_ = ::mkdtemp(pattern.data());
    folder_ = home_ + "/folder";
    std::filesystem::create_directory(folder_);
    auto made = Repository::create(GitProgram{}, home_ + "/repository");
    if (made) repository_ = std::make_unique<Repository>(*std::move(made));
  }
  ~SnapshotsTest() override { static_cast<void>(remove_tree(home_)); }
  void SetUp() override { ASSERT_TRUE(repository_); }

  const Repository& repository() const { return *repository_; }
  const std::string& home() const { return home_; }
  const std::string& folder() const { return folder_; }

  void write(const std::string& path, std::string_view text) const {
    write_in(folder_, path, text);
  }
  static void write_in(const std::string& folder, const std::string& path, std::string_view text) {
    const std::filesystem::path full = folder + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream{full, std::ios::binary} << text;
  }
  std::string read(const std::string& path) const {
    std::ifstream in{folder_ + "/" + path, std::ios::binary};
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool exists(const std::string& path) const {
    struct stat status{};
    return ::lstat((folder_ + "/" + path).c_str(), &status) == 0;
  }

  Snapshot take(const SnapshotOptions& options = {}) const { return take_of(folder_, options); }
  Snapshot take_of(const std::string& folder, const SnapshotOptions& options = {}) const {
    auto taken = take_snapshot(repository(), folder, options);
    EXPECT_TRUE(taken.has_value()) << taken.error().message;
    return taken ? *std::move(taken) : Snapshot{};
  }
  std::vector<std::string> paths_in(const Snapshot& snapshot) const {
    std::vector<std::string> paths;
    for (const ScannedEntry& entry : snapshot.entries) paths.push_back(entry.path);
    return paths;
  }
  // An ordinary git, with a user's configuration, as the judge.
  std::string git(const std::string& in, const std::string& command) const {
    const std::string line =
        "cd '" + in +
        "' && HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a "
        "GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b git " +
        command + " 2>/dev/null";
    std::string text;
    FILE* pipe = ::popen(line.c_str(), "r");  // allowed: only tests include this
    std::array<char, 4096> piece{};
    while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) {
      text.append(piece.data(), size);
    }
    last_status_ = WEXITSTATUS(::pclose(pipe));
    return text;
  }
  int last_status() const { return last_status_; }

 private:
  std::string home_;
  std::string folder_;
  std::unique_ptr<Repository> repository_;
  mutable int last_status_ = 0;
};

// Runs a step (tests/support/snapshot_step.cpp) in a process that is killed at the fault point.
// False if it did not get there.
inline bool dies_at(const char* point, std::vector<std::string> words) {
  words.insert(words.begin(), SNAPSHOT_STEP);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("BERTH_FAULT_POINT", point, 1);
    ::execv(SNAPSHOT_STEP, argv.data());
    ::_exit(127);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGKILL;
}

}  // namespace berth::snapshots
