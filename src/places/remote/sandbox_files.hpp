#pragma once

#include "places/remote/site.hpp"
#include "places/remote_files.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::places::remote {

// Files in plugin sandboxes. Inspection, and every step that decides, is a command in the sandbox,
// which needs sh and the usual small tools. Bytes use the plugin's own transfer if it has both
// directions, else base64 through commands. Everything arrives under a scratch name and is moved
// into place by one more command, so that a failed plugin leaves no partial file.
class SandboxFiles final : public RemoteFiles {
 public:
  // The provider must outlive this.
  explicit SandboxFiles(RemotePlace& provider) : provider_(provider) {}

  Task<RemoteLook> look(const PlaceRef& lease, const RemotePath& path) override;
  Task<RemoteListing> list(const PlaceRef& lease, const RemotePath& path,
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

  Exchange exchange(const PlaceRef& lease, const RemotePath& path) override;
  Task<> fetch(const PlaceRef& lease, const RemotePath& path, mode_t type,
               const std::string& local) override;
  Task<> send_file(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                   const std::string& local, std::uint64_t bytes) override;
  Task<> send_folder(const PlaceRef& lease, const RemotePath& path,
                     const std::string& local) override;

  // Where realize put a lease's workspace, for a provider whose acquire did not report it.
  void remember_folder(const PlaceKey& lease, std::string folder) {
    folders_.insert_or_assign(lease, std::move(folder));
  }
  std::optional<std::string> folder_of(const PlaceKey& lease) const {
    const auto found = folders_.find(lease);
    return found == folders_.end() ? std::nullopt : std::optional{found->second};
  }
  void forget(const PlaceKey& lease) {
    folders_.erase(lease);
    refuses_sync_.erase(lease);
  }

 private:
  using Site = RemotePlace::Site;
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
    PlaceKey key;
    std::string method;
    std::string source;
    std::string target;
    mode_t type;
    std::optional<mode_t> mode = {};
  };

  Task<Site> place_of(const PlaceRef& lease) const;
  Task<RemotePlace::Output> run(const Site& place, Step step) const;
  // A step that must succeed; returns its output.
  Task<std::string> must(const Site& place, Step step) const;
  Task<> move(const Site& place, Mapping mapping);
  std::string scratch_name() const;

  Task<RemoteLook> look_in(const Site& place, const RemotePath& path) const;
  Task<std::string> read_from(const Site& place, const std::string& path, std::uint64_t offset,
                              std::uint64_t count) const;
  Task<> append(const Site& place, const std::string& scratch, std::string_view bytes) const;
  Task<> write_to(const Site& place, const RemotePath& path, const std::string& scratch,
                  mode_t mode, std::string_view bytes) const;
  Task<> finish_file(const Site& place, const std::string& scratch, const RemotePath& path,
                     mode_t mode, std::uint64_t bytes) const;
  Task<std::string> pack_to(const Site& place, const RemotePath& path, const std::string& scratch,
                            std::size_t bytes_max) const;
  Task<Draft> open_draft(const Site& place, const RemotePath& path) const;
  Task<> unpack_to(const Site& place, const RemotePath& path, const Draft& draft,
                   std::string_view tar) const;
  Task<> place_draft(const Site& place, const RemotePath& path, const Draft& draft,
                     const std::string& tar) const;
  // Cleans up as far as the sandbox still can; the original failure remains the one that is
  // reported.
  asio::awaitable<void> abandon(const PlaceRef& lease, Draft draft) const;

  RemotePlace& provider_;
  std::map<PlaceKey, std::string> folders_;
  std::set<PlaceKey> refuses_sync_;  // leases whose plugin refused to transfer files itself
};

}  // namespace berth::places::remote
