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

// Moves files in and out of a leased place while it is active or retained. A path is resolved as
// commands there would: relative to their working directory, or from their "/" if it starts with
// one. A place that is a folder on this machine has no "/" of its own. Links are not followed, and
// a path that leads out of the place is path_refused. Changes are recorded in the activity before
// they are made.
class LeaseFiles {
 public:
  static constexpr std::size_t bytes_max = file_bytes_max;

  LeaseFiles(Services& services, LeaseLifecycle& work) : services_(services), work_(work) {}

  // A folder is listed. body_too_large when more than `bytes_max` would have to be read.
  Task<std::variant<FilePart, FolderListing>> read(core::Call call, core::LeaseId id,
                                                   FileRead wanted);
  using Written = FileWritten;
  // The caller keeps the bytes alive until completion.
  Task<Written> write(core::Call call, core::LeaseId id, FileWrite wanted, std::string_view bytes);
  // A file, a link, or a folder with its contents.
  Task<> remove(core::Call call, core::LeaseId id, std::string path);

  // A folder or file as a tar archive.
  Task<std::string> archive(core::Call call, core::LeaseId id, std::string path);
  // Unpacks a tar into a folder, which is created if needed; all of it or nothing. The caller keeps
  // the bytes alive until completion.
  Task<> unpack(core::Call call, core::LeaseId id, std::string path, std::string_view tar);

 private:
  // The files of a place, and the path of the requested one.
  struct Tree {
    workspaces::Confined files;
    std::string path;
    workspaces::LinkRule links;  // for archives unpacked there
  };
  using Found = std::variant<Tree, FarPlace>;
  Task<Found> look(const core::Call& call, const core::LeaseId& id, std::string path);
  Task<Found> intend(const core::Call& call, const core::LeaseId& id, std::string_view action,
                     std::string path);
  Task<Found> open(const core::LeaseRecord& lease, std::string path);
  Task<FarPlace> open_far(places::Place& place, places::PlaceRef facts, std::string path);

  Services& services_;
  LeaseLifecycle& work_;
  // Separate threads, so that a long transfer does not delay lease acquisition. As many transfers
  // are in memory at a time; the others wait.
  asio::thread_pool pool_{2};
  RemotePlaceFiles far_{services_.random, pool_};
};

}  // namespace berth::engine
