#pragma once

#include "core/call.hpp"
#include "core/rows/lease.hpp"
#include "engine/leases/remote_place_files.hpp"
#include "engine/services.hpp"
#include "workspaces/archive_in.hpp"

#include <boost/asio/thread_pool.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::engine {

class LeaseLifecycle;

// Files in and out of the place that a lease holds, while it is active or retained. A path is read
// as the commands there would: from where they work, or from their "/" when it starts so. A place
// that is a folder of this machine has no "/" of its own. No link is followed, and what leads out
// of the place is path_refused. Changes leave an activity entry before they are made.
class LeaseFiles {
 public:
  static constexpr std::size_t bytes_max = file_bytes_max;

  LeaseFiles(Services& services, LeaseLifecycle& work) : services_(services), work_(work) {}

  // A folder is listed. body_too_large when more than `bytes_max` would have to be read.
  Task<std::variant<FilePart, FolderListing>> read(core::Call call, core::LeaseId id,
                                                   FileRead wanted);
  using Written = FileWritten;
  // The caller keeps the bytes until the answer.
  Task<Written> write(core::Call call, core::LeaseId id, FileWrite wanted, std::string_view bytes);
  // A file, a link, or a folder with all that is in it.
  Task<> remove(core::Call call, core::LeaseId id, std::string path);

  // A folder or a file as a tar.
  Task<std::string> archive(core::Call call, core::LeaseId id, std::string path);
  // Unpacks a tar into a folder, which is made as needed; all of it or nothing. The caller keeps
  // the bytes until the answer.
  Task<> unpack(core::Call call, core::LeaseId id, std::string path, std::string_view tar);

 private:
  // The files of a place, and the way to those that are meant.
  struct Tree {
    workspaces::Confined files;
    std::string path;
    workspaces::LinkRule links;  // of archives that are unpacked there
  };
  using Found = std::variant<Tree, FarPlace>;
  Task<Found> look(const core::Call& call, const core::LeaseId& id, std::string path);
  Task<Found> intend(const core::Call& call, const core::LeaseId& id, std::string_view action,
                     std::string path);
  Task<Found> open(const core::LeaseRecord& lease, std::string path);
  Task<FarPlace> open_far(drivers::Driver& driver, drivers::PlaceRef facts, std::string path);

  Services& services_;
  LeaseLifecycle& work_;
  // Threads of its own, so that a long transfer keeps no lease from being made; as many transfers
  // are in memory at a time, the others wait.
  asio::thread_pool pool_{2};
  RemotePlaceFiles far_{services_.random, pool_};
};

}  // namespace berth::engine
