#pragma once

#include "base/result.hpp"
#include "snapshots/beneath.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::snapshots {

struct GitLimits {
  std::chrono::milliseconds time_max{60'000};    // until the program has ended
  std::uint64_t output_bytes_max = 64ULL << 30;  // on its standard output
  std::uint64_t memory_bytes_max = 32ULL << 30;  // of address space, with mapped packs
  std::uint64_t file_bytes_max = 64ULL << 30;    // of one file that it writes
};

// One execution of git, as a value.
struct GitCall {
  std::vector<std::string> arguments = {};  // the subcommand and its arguments
  // Added to the environment: GIT_OBJECT_DIRECTORY, for example.
  std::vector<std::pair<std::string, std::string>> variables = {};
  ByteSource input = {};            // absent: empty
  ByteSink output = {};             // absent: discarded
  std::vector<int> accepted = {0};  // exit statuses that are not failures
  GitLimits limits = {};
};

struct GitEnd {
  int status = 0;
  std::string errors = {};  // the beginning of its standard error
};

// Runs git on bytes that nobody vouches for. Git gets an environment from nothing, no configuration
// but ours, no hooks, no transport, no credential helper, no pager and no editor, and it is killed
// with all its children at its deadline.
//
// Every call blocks: make it on the pool. Fails with git_unavailable, git_failed (with the first
// line of its errors, or for too much output), timed_out, or the error of the input or the output.
class GitProgram {
 public:
  explicit GitProgram(std::string program = "/usr/bin/git") : program_(std::move(program)) {}

  // In the repository whose git folder is given by an absolute path; empty: in none.
  Result<GitEnd> run(const std::string& git_folder, const GitCall& call) const;
  // The output as text, at most `bytes_max` of it.
  Result<std::string> output(const std::string& git_folder, GitCall call,
                             std::size_t bytes_max = 1 << 20) const;
  // Whether this git can do what this folder needs: 2.39 or newer.
  Result<> check_version() const;

 private:
  std::string program_;
};

}  // namespace berth::snapshots
