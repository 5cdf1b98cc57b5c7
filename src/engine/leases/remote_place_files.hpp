#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "places/place.hpp"
#include "workspaces/archive_in.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::engine {

// One entry in a folder of a place.
struct FileEntry {
  std::string name;  // bytes other than printable UTF-8 are written \xNN, a backslash is doubled
  workspaces::FileType type = workspaces::FileType::file;
  std::int64_t bytes = 0;
  std::string mode;  // permission bits: "0644"
  Time mtime;
  std::optional<std::string> target = {};  // of a symbolic link, written like a name
};
BOOST_DESCRIBE_STRUCT(FileEntry, (), (name, type, bytes, mode, mtime, target))

struct FolderListing {
  std::vector<FileEntry> entries;
  bool is_truncated = false;
};
BOOST_DESCRIBE_STRUCT(FolderListing, (), (entries, is_truncated))

// Bytes of a file, starting at the request's `offset`.
struct FilePart {
  std::string bytes;
  std::string mode;
  Time mtime = {};
  std::uint64_t file_bytes = 0;  // total size; a growing file may be larger by the next response
  std::uint64_t next_offset = 0;
  bool eof = false;
};

struct FileRead {
  std::string path;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> bytes_max = {};  // absent: all the rest, or an error
};

struct FileWrite {
  std::string path;
  mode_t mode = 0644;
  std::optional<Time> mtime = {};  // absent: the time of writing, as always in a remote place
};

enum class FileWritten { created, replaced };

// The maximum for one request, which is in memory as a whole.
inline constexpr std::size_t file_bytes_max = std::size_t{64} << 20;
// Smaller than the library's limits, because a caller waits for the response.
inline constexpr workspaces::Limits file_limits{.entries_max = 100'000, .bytes_max = 4ULL << 30};

// For a folder whose archive is too large.
inline constexpr std::string_view folder_remedy =
    "berth cp LEASE:FOLDER . takes it part by part; by the API: list it and read its files";
std::unexpected<Error> too_large_to_answer(std::string_view path, std::string remedy);
std::string mode_text(mode_t mode);
FileEntry file_entry_of(const workspaces::FileView& view);

// Something in a place that is not a folder on this machine.
struct FarPlace {
  places::RemoteFiles* files = nullptr;
  places::PlaceRef facts;
  places::RemotePath path;
  std::string shown;  // as the caller named it
};

// The operations of LeaseFiles for such places, with the same rules. Their data is not trusted: an
// archive is unpacked and repacked in a temporary folder that is deleted with the request.
class RemotePlaceFiles {
 public:
  RemotePlaceFiles(Random& random, asio::thread_pool& pool) : random_(random), pool_(pool) {}

  Task<std::variant<FilePart, FolderListing>> read(const FarPlace& place, const FileRead& wanted);
  Task<FileWritten> write(const FarPlace& place, mode_t mode, std::string_view bytes);
  Task<> remove(const FarPlace& place);
  Task<std::string> archive(const FarPlace& place);
  Task<> unpack(const FarPlace& place, std::string_view tar);

 private:
  class Staging;
  Task<std::variant<FilePart, FolderListing>> list(const FarPlace& place);
  Task<std::string> read_whole(const FarPlace& place, const places::Exchange& exchange,
                               std::uint64_t bytes);
  Task<std::string> archive_from(const FarPlace& place, const Staging& staging,
                                 const places::RemoteEntry& entry);
  Task<> unpack_from(const FarPlace& place, const Staging& staging, std::string_view tar);
  Task<> send_from(const FarPlace& place, const Staging& staging, mode_t mode,
                   std::string_view bytes);
  Task<std::shared_ptr<const Staging>> stage(const places::Exchange& exchange);
  asio::awaitable<void> clear(std::shared_ptr<const Staging> staging);

  Random& random_;
  asio::thread_pool& pool_;
};

}  // namespace berth::engine
