#pragma once

#include "places/remote_files.hpp"
#include "places/remote/provider_place.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::plugins {

// Files in plugin sandboxes. Inspection, and every step that decides, is a command in the sandbox,
// which needs sh and the usual small tools. Bytes use the plugin's own transfer if it has both
// directions, else base64 through commands. Everything arrives under a scratch name and is moved
// into place by one more command, so that a failed plugin leaves no partial file.
class SandboxFiles final : public execution::RemoteFiles {
 public:
  using PlaceRef = execution::PlaceRef;
  using RemotePath = execution::RemotePath;

  // The provider must outlive this.
  explicit SandboxFiles(RemoteProvider& provider) : provider_(provider) {}

  Task<execution::RemoteLook> look(const PlaceRef& lease, const RemotePath& path) override;
  Task<execution::RemoteListing> list(const PlaceRef& lease, const RemotePath& path,
                                      std::size_t entries_max) override;
  Task<> remove(const PlaceRef& lease, const RemotePath& path) override;
  Task<std::string> read(const PlaceRef& lease, const RemotePath& path, std::uint64_t offset,
                         std::uint64_t count) override;
  Task<> write(const PlaceRef& lease, const RemotePath& path, mode_t mode,
               std::string_view bytes) override;
  Task<std::string> pack(const PlaceRef& lease, const RemotePath& path,
                         std::size_t bytes_max) override;
  Task<> unpack(const PlaceRef& lease, const RemotePath& path, std::string_view tar) override;
  Task<std::optional<std::string>> find_unfit(const PlaceRef& lease,
                                              const RemotePath& path) override;

  execution::Exchange exchange(const PlaceRef& lease, const RemotePath& path) override;
  Task<> fetch(const PlaceRef& lease, const RemotePath& path, mode_t type,
               const std::string& local) override;
  Task<> send_file(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                   const std::string& local, std::uint64_t bytes) override;
  Task<> send_folder(const PlaceRef& lease, const RemotePath& path,
                     const std::string& local) override;

  // Where realize put a lease's workspace, for a provider whose acquire did not report it.
  void remember_folder(const core::LeaseId& lease, std::string folder) {
    folders_.insert_or_assign(lease, std::move(folder));
  }
  std::optional<std::string> folder_of(const core::LeaseId& lease) const {
    const auto found = folders_.find(lease);
    return found == folders_.end() ? std::nullopt : std::optional{found->second};
  }
  void forget(const core::LeaseId& lease) {
    folders_.erase(lease);
    refuses_sync_.erase(lease);
  }

 private:
  using Place = RemoteProvider::Place;
  // The arguments are paths and numbers; the script knows them as $a, $b, $c and $e.
  struct Step {
    std::string_view script;
    std::vector<std::string> words = {};
    std::string input = {};
    std::chrono::milliseconds time = std::chrono::seconds{60};
  };
  struct Draft {
    std::string folder = {};   // inside the target
    std::string scratch = {};  // a file
    std::string top = {};      // the topmost folder that was created; usually empty
  };
  struct Mapping {
    core::LeaseId lease_id;
    std::string method;
    std::string source;
    std::string target;
    mode_t type;
    std::optional<mode_t> mode = {};
  };

  Task<Place> place_of(const PlaceRef& lease) const;
  Task<RemoteProvider::Output> run(const Place& place, Step step) const;
  // A step that must succeed; returns its output.
  Task<std::string> must(const Place& place, Step step) const;
  Task<> move(const Place& place, Mapping mapping);
  std::string scratch_name() const;

  Task<execution::RemoteLook> look_in(const Place& place, const RemotePath& path) const;
  Task<std::string> read_from(const Place& place, const std::string& path, std::uint64_t offset,
                              std::uint64_t count) const;
  Task<> append(const Place& place, const std::string& scratch, std::string_view bytes) const;
  Task<> write_to(const Place& place, const RemotePath& path, const std::string& scratch,
                  mode_t mode, std::string_view bytes) const;
  Task<> finish_file(const Place& place, const std::string& scratch, const RemotePath& path,
                     mode_t mode, std::uint64_t bytes) const;
  Task<std::string> pack_to(const Place& place, const RemotePath& path, const std::string& scratch,
                            std::size_t bytes_max) const;
  Task<Draft> open_draft(const Place& place, const RemotePath& path) const;
  Task<> unpack_to(const Place& place, const RemotePath& path, const Draft& draft,
                   std::string_view tar) const;
  Task<> place_draft(const Place& place, const RemotePath& path, const Draft& draft,
                     const std::string& tar) const;
  // Cleans up as far as the sandbox still can; the original failure remains the one that is
  // reported.
  asio::awaitable<void> abandon(const PlaceRef& lease, Draft draft) const;

  RemoteProvider& provider_;
  std::map<core::LeaseId, std::string> folders_;
  std::set<core::LeaseId> refuses_sync_;  // leases whose plugin refused to transfer files itself
};

}  // namespace berth::plugins
