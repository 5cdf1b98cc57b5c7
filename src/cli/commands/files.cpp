#include "base/files.hpp"
#include "cli/commands/common.hpp"
#include "workspaces/archive_in.hpp"
#include "workspaces/archive_out.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>

// Files in and out of the places that leases hold.
namespace berth::cli {
namespace {

using workspaces::Confined;

constexpr std::size_t bytes_max = std::size_t{64} << 20;  // what one request carries
constexpr std::size_t part_bytes = std::size_t{16} << 20;
constexpr mode_t usual_mode = 0644;

struct CopyOptions {
  std::string from;
  std::string to;
};

// "LEASE:PATH". A path of this machine that has a colon is written with a slash before it.
struct There {
  std::string lease;
  std::string path;
};
std::optional<There> parse_there(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) return std::nullopt;
  return There{.lease = text.substr(0, colon), .path = text.substr(colon + 1)};
}

std::string last_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string{path.substr(path.rfind('/') + 1)};
}

// Into a folder under its own name, as cp does it.
std::string with_name(std::string to, const std::string& from) {
  if (!to.empty() && !to.ends_with('/')) return to;
  return to + last_name(from);
}

class Place {
 public:
  static Result<Place> find(Session& session, const There& there) {
    BERTH_TRY(const Client* client, session.client());
    BERTH_TRY(const std::string id, session.find_id(lease_kind(), there.lease));
    return Place{*client, "/api/environment-leases/" + id};
  }

  Result<Bytes> read(const std::string& path, std::uint64_t offset, std::size_t count) const {
    return client_->transfer({.path = lease_ + "/files?path=" + url_encoded(path) +
                                      "&offset=" + std::to_string(offset) +
                                      "&limitBytes=" + std::to_string(count)});
  }
  Result<> write(const std::string& path, mode_t mode, std::string_view bytes) const {
    std::array<char, 8> octal{};
    std::to_chars(octal.begin(), octal.end(), mode, 8);
    return put("/files?mode=" + std::string{octal.data()} + "&path=" + url_encoded(path), bytes);
  }
  Result<Bytes> archive(const std::string& path) const {
    return client_->transfer({.path = lease_ + "/archive?path=" + url_encoded(path)});
  }
  Result<> unpack(const std::string& path, std::string_view tar) const {
    return put("/archive?path=" + url_encoded(path), tar);
  }

 private:
  Place(const Client& client, std::string lease) : client_(&client), lease_(std::move(lease)) {}
  Result<> put(const std::string& rest, std::string_view bytes) const {
    BERTH_DO(client_->transfer({.method = "PUT", .path = lease_ + rest, .bytes = bytes}));
    return {};
  }

  const Client* client_;
  std::string lease_;
};

bool is_folder(const Bytes& answer) {
  return answer.content_type.starts_with("application/json");
}

Result<Fd> open_here(const std::string& path, int flags) {
  Fd file{::open(path.c_str(), flags | O_CLOEXEC)};
  if (!file) return io_failure("open", path, errno);
  return file;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::unexpected<Error> too_large(const std::string& path) {
  return fail(Errc::body_too_large, path + ": is more than " + std::to_string(bytes_max) + " bytes",
              "copy its parts one by one");
}

Result<> copy_in(const Place& place, const std::string& from, const std::string& to) {
  BERTH_TRY(Fd file, open_here(from, O_RDONLY | O_NONBLOCK));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return io_failure("look at", from, errno);
  if (!S_ISDIR(status.st_mode)) {
    if (!S_ISREG(status.st_mode)) {
      return fail(Errc::path_refused, from + ": is neither a file nor a folder");
    }
    if (static_cast<std::uint64_t>(status.st_size) > bytes_max) return too_large(from);
    BERTH_TRY(const std::string bytes, read_fd(file.get(), bytes_max, from));
    return place.write(with_name(to, from), status.st_mode & 0777, bytes);
  }
  std::string tar;
  const auto take = [&](std::string_view piece) -> Result<> {
    if (piece.size() > bytes_max - tar.size()) return too_large(from);
    tar += piece;
    return {};
  };
  BERTH_DO(workspaces::archive_out(Confined{std::move(file)}, "", take));
  return place.unpack(to, tar);
}

Result<> take_folder(const Place& place, const std::string& from, const std::string& to) {
  BERTH_TRY(const Bytes tar, place.archive(from));
  BERTH_DO(make_directories(to, 0777));
  BERTH_TRY(Fd folder, open_here(to, O_PATH | O_DIRECTORY));
  const auto source = [left = std::string_view{tar.bytes}]() mutable -> Result<std::string_view> {
    return std::exchange(left, {});
  };
  BERTH_DO(workspaces::archive_in(Confined{std::move(folder)}, "", source));
  return {};
}

// Part by part, so that the size of the file does not matter.
Result<> take_file(const Place& place, const std::string& from, Bytes part, const std::string& to) {
  BERTH_TRY(Fd folder, open_here(folder_of(to), O_PATH | O_DIRECTORY));
  mode_t mode = usual_mode;
  std::from_chars(part.mode.data(), part.mode.data() + part.mode.size(), mode, 8);
  std::uint64_t taken = 0;
  bool is_first = true;
  const auto source = [&]() -> Result<std::string_view> {
    if (!std::exchange(is_first, false)) {
      if (part.is_whole) return std::string_view{};
      BERTH_TRY(part, place.read(from, taken, part_bytes));
    }
    taken += part.bytes.size();
    return std::string_view{part.bytes};
  };
  BERTH_DO(Confined{std::move(folder)}.write_file(last_name(to), source, {.mode = mode & 0777}));
  return {};
}

Result<> copy_out(const Place& place, const std::string& from, std::string to) {
  BERTH_TRY(Bytes first, place.read(from, 0, part_bytes));
  if (is_folder(first)) return take_folder(place, from, to);
  struct stat status{};
  if (::stat(to.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && !to.ends_with('/')) to += '/';
  return take_file(place, from, std::move(first), with_name(std::move(to), from));
}

Result<> copy(Session& session, const CopyOptions& options) {
  const std::optional<There> from = parse_there(options.from);
  const std::optional<There> to = parse_there(options.to);
  if (from.has_value() == to.has_value()) {
    return fail(Errc::bad_request, "exactly one of the two is to be LEASE:PATH",
                "berth cp file 0190b5d2:file, or berth cp 0190b5d2:file file");
  }
  BERTH_TRY(const Place place, Place::find(session, from ? *from : *to));
  return from ? copy_out(place, from->path, options.to) : copy_in(place, options.from, to->path);
}

Result<> list(Session& session, const std::string& named) {
  const std::vector<Column> columns = {
      {.title = "MODE", .key = "mode"},
      {.title = "BYTES", .key = "bytes"},
      {.title = "MODIFIED", .key = "mtime", .shown = Shown::moment},
      {.title = "TYPE", .key = "type"},
      {.title = "NAME", .key = "name"},
      {.title = "TARGET", .key = "target"}};
  const There there = parse_there(named).value_or(There{.lease = named, .path = {}});
  BERTH_TRY(const Place place, Place::find(session, there));
  BERTH_TRY(const Bytes found, place.read(there.path, 0, 1));
  if (!is_folder(found)) {
    return fail(Errc::path_refused, there.path + ": is a file, no folder",
                "copy it with 'berth cp'");
  }
  BERTH_TRY(const bj::value listing, parse_json(found.bytes));
  const bj::value* entries =
      listing.is_object() ? listing.get_object().if_contains("entries") : nullptr;
  if (entries == nullptr || !entries->is_array()) {
    return fail(Errc::server_unreachable, "the server's listing is no list");
  }
  session.printer().list(entries->get_array(), columns);
  return {};
}

}  // namespace

void add_file_commands(CommandTree& tree) {
  const auto options = std::make_shared<CopyOptions>();
  CLI::App& copies =
      tree.leaf(tree.root(), "cp", "copy a file or a folder into a place that is held, or out",
                "berth cp report.txt 0190b5d2:in/",
                [options](Session& session) { return copy(session, *options); });
  copies.add_option("from", options->from, "a path, or LEASE:PATH")->required();
  copies
      .add_option("to", options->to,
                  "the same; a file goes into what ends with '/', what a folder holds goes into "
                  "the folder named here")
      ->required();
  const auto named = std::make_shared<std::string>();
  tree.leaf(tree.root(), "ls", "list a folder of a place that is held", "berth ls 0190b5d2:/tmp",
            [named](Session& session) { return list(session, *named); })
      .add_option("folder", *named, "LEASE:PATH; without a path: where its commands work")
      ->required();
}

}  // namespace berth::cli
