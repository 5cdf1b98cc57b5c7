#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/place.hpp"
#include "cli/run/attachment.hpp"
#include "cli/run/verdict.hpp"
#include "workspaces/archive_in.hpp"
#include "workspaces/archive_out.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <sstream>

// Files in and out of leased places.
namespace berth::cli {
namespace {

using workspaces::Confined;
using workspaces::LinkRule;

constexpr std::size_t bytes_max = std::size_t{64} << 20;  // the limit of one request
constexpr std::size_t part_bytes = std::size_t{16} << 20;
constexpr mode_t usual_mode = 0644;
constexpr mode_t private_mode = 0700;
constexpr std::size_t answer_bytes_max = 500;

struct CopyOptions {
  std::string from;
  std::string to;
  bool takes_all_links = false;
};

// "PLACE:PATH". A local path that contains a colon is written with a slash before it.
struct There {
  std::string place;
  std::string path;
};
std::optional<There> parse_there(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) return std::nullopt;
  return There{.place = text.substr(0, colon), .path = text.substr(colon + 1)};
}

std::string last_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string{path.substr(path.rfind('/') + 1)};
}

// Into a folder under its own name, like cp.
std::string with_name(std::string to, const std::string& from) {
  if (!to.empty() && !to.ends_with('/')) return to;
  return to + last_name(from);
}

std::string parent_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string path_below(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string octal(mode_t mode) {
  std::array<char, 8> digits{};
  std::to_chars(digits.begin(), digits.end(), mode, 8);
  return digits.data();
}

mode_t parse_mode(std::string_view digits, mode_t usual) {
  mode_t mode = usual;
  std::from_chars(digits.data(), digits.data() + digits.size(), mode, 8);
  return mode & 0777;
}

// As a command argument there, which must not be mistaken for an option.
std::string as_argument(const std::string& path) {
  return path.starts_with('/') ? path : "./" + path;
}

class Place {
 public:
  static Result<Place> find(Context& context, const There& there) {
    BERTH_TRY(const Client* client, context.client());
    BERTH_TRY(const std::string id, enter_place(context, there.place));
    return Place{*client, "/api/environment-leases/" + id};
  }

  Result<Bytes> read(const std::string& path, std::uint64_t offset, std::size_t count) const {
    return client_->transfer({.path = lease_ + "/files?path=" + url_encoded(path) +
                                      "&offset=" + std::to_string(offset) +
                                      "&limitBytes=" + std::to_string(count)});
  }
  Result<> write(const std::string& path, mode_t mode, Time mtime, std::string_view bytes) const {
    return put("/files?mode=" + octal(mode) + "&mtime=" + url_encoded(to_iso8601(mtime)) +
                   "&path=" + url_encoded(path),
               bytes);
  }
  Result<> remove(const std::string& path) const {
    BERTH_DO(client_->transfer(
        {.method = "DELETE", .path = lease_ + "/files?path=" + url_encoded(path)}));
    return {};
  }
  Result<Bytes> archive(const std::string& path) const {
    return client_->transfer({.path = lease_ + "/archive?path=" + url_encoded(path)});
  }
  Result<> unpack(const std::string& path, std::string_view tar) const {
    return put("/archive?path=" + url_encoded(path), tar);
  }
  // Runs a command there, whose input is a local file.
  Result<> feed(const std::vector<std::string>& argv, int input) const {
    std::ostringstream said;
    Console silent{.out = said, .err = said};
    Attachment attachment{*client_, silent};
    BERTH_TRY(
        const AttachEnd end,
        attachment.follow({.run_id = "copy",
                           .path = lease_ + "/stream?command=" + url_encoded(encode_text(argv)),
                           .stdin_fd = input,
                           .remarks = Remarks::silent,
                           .on_break = OnBreak::end}));
    const auto* const ended = std::get_if<RunEnded>(&end);
    if (ended == nullptr) return fail(Errc::cancelled, "the copy was interrupted");
    const int code = exit_code_of_command(ended->run);
    if (code == 0) return {};
    const std::string words = said.str();
    return fail(Errc::io_failed,
                "the command that takes the copy there failed with " + std::to_string(code) + ": " +
                    as_utf8(clipped(words, answer_bytes_max)),
                "what is larger than 64 MiB needs room, sh, cat and wc there, and tar for a "
                "folder");
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

struct Listing {
  bj::array entries;
  bool is_cut = false;
};
Result<Listing> parse_listing(const Bytes& answer) {
  BERTH_TRY(const bj::value listing, parse_json(answer.bytes));
  const auto entries = peek<bj::array>(listing, "entries");
  if (!entries) {
    return fail(Errc::server_unreachable, "the server's listing has no list of entries");
  }
  return Listing{.entries = *entries, .is_cut = peek<bool>(listing, "isTruncated").value_or(false)};
}

Result<Fd> open_here(const std::string& path, int flags) {
  Fd file{::open(path.c_str(), flags | O_CLOEXEC)};
  if (!file) return io_failure("open", path, errno);
  return file;
}

// A file too large for one request is sent to a draft, which is created by the rules of the place
// like any other file. It gets its name when it is complete.
Result<> send_file(const Place& place, int file, const struct stat& status, const std::string& to) {
  constexpr const char* script = R"sh(
[ -f "$1" ] || { echo "its commands do not find $1"; exit 1; }
if [ -L "$2" ] || { [ -e "$2" ] && [ ! -f "$2" ]; }; then
  echo "$2 is there and no regular file"; exit 1
fi
cat > "$1" || exit 1
[ "$(wc -c < "$1")" -ge "$3" ] || { echo 'a part of it is missing'; exit 1; }
touch -d "@$5" "$1" 2>/dev/null
chmod "$4" "$1" && mv -f "$1" "$2"
)sh";
  const std::string folder = to.contains('/') ? to.substr(0, to.rfind('/') + 1) : "";
  const std::string draft = folder + workspaces::draft_name();
  BERTH_DO(place.write(draft, 0600, workspaces::time_of(status.st_mtim), ""));
  Result<> sent = place.feed({"sh", "-c", script, "sh", as_argument(draft), as_argument(to),
                              std::to_string(status.st_size), octal(status.st_mode & 0777),
                              std::to_string(status.st_mtim.tv_sec)},
                             file);
  // The caller needs the original failure, not a failed cleanup.
  if (!sent) static_cast<void>(place.remove(draft));
  return sent;
}

// The other side no longer reads: `cancelled`.
Result<> send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EPIPE) return fail(Errc::cancelled, "the archive has no reader");
    if (sent < 0) return io_failure("write", "the archive", errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

// A folder too large for one request is packed on its own thread while a command there unpacks it.
Result<> send_folder(const Place& place, const Confined& from, const std::string& to) {
  static constexpr std::array<char, 1024> empty_tar{};
  // Creates the folder, by the rules of the place.
  BERTH_DO(place.unpack(to, {empty_tar.data(), empty_tar.size()}));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return io_failure("make", "a pair of sockets", errno);
  }
  Fd reading{ends[0]};
  Fd writing{ends[1]};
  Result<workspaces::Packed> packed;
  asio::thread_pool packing{1};
  asio::post(packing, [&] {
    packed = workspaces::archive_out(
        from, "", [&](std::string_view piece) { return send_all(writing.get(), piece); });
    writing = Fd{};
  });
  Result<> sent = place.feed(
      {"sh", "-c", "cd \"$1\" && exec tar -x -p -o -f -", "sh", as_argument(to)}, reading.get());
  reading = Fd{};
  packing.join();
  if (!packed && packed.error().code != Errc::cancelled) {
    return std::unexpected(std::move(packed).error());
  }
  return sent;
}

Result<> copy_in(const Place& place, const std::string& from, const std::string& to) {
  BERTH_TRY(Fd file, open_here(from, O_RDONLY | O_NONBLOCK));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return io_failure("look at", from, errno);
  if (!S_ISDIR(status.st_mode)) {
    if (!S_ISREG(status.st_mode)) {
      return fail(Errc::path_refused, from + ": is neither a file nor a folder");
    }
    const std::string name = with_name(to, from);
    if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
      return send_file(place, file.get(), status, name);
    }
    BERTH_TRY(const std::string bytes, read_fd(file.get(), bytes_max, from));
    const Time mtime = workspaces::time_of(status.st_mtim);
    return place.write(name, status.st_mode & 0777, mtime, bytes);
  }
  // These are the caller's own files, so hard links are allowed.
  const Confined folder{
      std::move(file), workspaces::Mounts::refused, {}, {}, workspaces::HardLinks::taken};
  std::string tar;
  const auto take = [&](std::string_view piece) -> Result<> {
    if (piece.size() > bytes_max - tar.size()) return fail(Errc::body_too_large, "is too large");
    tar += piece;
    return {};
  };
  const Result<workspaces::Packed> packed = workspaces::archive_out(folder, "", take);
  if (packed) return place.unpack(to, tar);
  if (packed.error().code != Errc::body_too_large) return std::unexpected(packed.error());
  tar = {};
  return send_folder(place, folder, to);
}

// Folders created for a copy. Empty ones are removed unless the copy is kept.
class NewFolders {
 public:
  static Result<NewFolders> make(std::string path) {
    NewFolders made;
    const std::string whole = path;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    struct stat status{};
    for (; ::lstat(path.c_str(), &status) != 0 && errno == ENOENT; path = parent_folder(path)) {
      made.paths_.push_back(path);
    }
    BERTH_DO(make_directories(whole, 0777));
    return made;
  }
  NewFolders(NewFolders&& other) noexcept : paths_(std::exchange(other.paths_, {})) {}
  NewFolders& operator=(NewFolders&&) = delete;
  ~NewFolders() {
    for (const std::string& path : paths_) ::rmdir(path.c_str());
  }
  void keep() { paths_.clear(); }

 private:
  NewFolders() = default;
  std::vector<std::string> paths_;  // the deepest first
};

// A local target folder of a copy, as the caller names it.
struct Here {
  Confined folder;
  std::string path;
};

// Adds the folder to the message, whose path is relative to it, and a remedy for this machine.
std::unexpected<Error> refused_here(Error why, const Here& here) {
  why.message = "on this machine, in " + in_quotes(here.path) + ": " + why.message;
  if (why.code == Errc::store_full) {
    why.remedy = "make room on this machine";
  } else if (why.remedy.empty()) {
    why.remedy = "name a folder of this machine that your user may write to";
  }
  return std::unexpected(std::move(why));
}

Result<> unpack_here(const Here& here, const std::string& to, const Bytes& tar, LinkRule links) {
  const auto source = [left = std::string_view{tar.bytes}]() mutable -> Result<std::string_view> {
    return std::exchange(left, {});
  };
  const auto unpacked = workspaces::archive_in(
      here.folder, to, source,
      {.links = links,
       .link_remedy = "'berth cp --links' copies links as they are written, wherever they lead"});
  if (!unpacked) return refused_here(unpacked.error(), here);
  return {};
}

// In parts, so that the file size does not matter; up to the size it had at first.
Result<> take_file(const Place& place, const std::string& from, const Here& here,
                   const std::string& to, Bytes part) {
  const Bytes first{.bytes = {},
                    .content_type = {},
                    .mode = part.mode,
                    .mtime = part.mtime,
                    .file_bytes = part.file_bytes};
  const std::uint64_t whole = part.file_bytes.value_or(~std::uint64_t{0});
  std::uint64_t taken = 0;
  bool is_first = true;
  bool is_given = true;  // by the other side
  const auto source = [&]() -> Result<std::string_view> {
    if (!std::exchange(is_first, false)) {
      if (taken == whole || (!first.file_bytes && part.is_whole)) return std::string_view{};
      is_given = false;
      BERTH_TRY(part, place.read(from, taken, std::min<std::uint64_t>(part_bytes, whole - taken)));
      const bool is_same = part.file_bytes != first.file_bytes || part.mtime == first.mtime;
      if (!is_same || (first.file_bytes && part.bytes.empty())) {
        return fail(Errc::conflict, from + ": changed while it was read",
                    "copy it again when nothing writes to it");
      }
      is_given = true;
    }
    taken += part.bytes.size();
    return std::string_view{part.bytes};
  };
  workspaces::Look look{.mode = parse_mode(first.mode, usual_mode)};
  if (first.mtime) look.modified = workspaces::timespec_of(*first.mtime);
  const auto written = here.folder.write_file(to, source, look);
  if (written) return {};
  return is_given ? refused_here(written.error(), here) : std::unexpected(written.error());
}

// Copies a folder too large for one response: each entry as an archive, and what is still too large
// in parts. Uses a list of folders instead of recursion, because the tree is untrusted.
class PartwiseCopy {
 public:
  PartwiseCopy(const Place& place, const Here& here, LinkRule links)
      : place_(place), here_(here), links_(links) {}

  Result<> run(const std::string& from) {
    folders_.push_back({.from = from, .to = {}});
    while (!folders_.empty()) {
      const Folder folder = std::move(folders_.back());
      folders_.pop_back();
      BERTH_TRY(const Bytes answer, place_.read(folder.from, 0, 1));
      BERTH_TRY(const Listing listing, parse_listing(answer));
      if (listing.is_cut) {
        return fail(Errc::body_too_large,
                    folder.from + ": is too large for one archive and too long for one listing",
                    "pack it there: berth exec PLACE tar -cf /tmp/all.tar FOLDER; then "
                    "berth cp PLACE:/tmp/all.tar .");
      }
      for (const bj::value& entry : listing.entries) BERTH_DO(take(folder, entry));
    }
    return finish();
  }

 private:
  struct Folder {
    std::string from;
    std::string to;  // relative to here_
  };
  struct FolderLook {
    std::string path;
    mode_t mode = 0;
    std::optional<Time> mtime = {};
  };

  Result<> take(const Folder& folder, const bj::value& entry) {
    const std::string name = workspaces::unescaped(text_of(entry, "name"));
    const std::string from = path_below(folder.from, name);
    const std::string to = path_below(folder.to, name);
    const bool is_directory = text_of(entry, "type") == "directory";
    const bool is_new = is_directory && !here_.folder.stat(to);
    const Result<Bytes> tar = place_.archive(from);
    if (tar) {
      BERTH_DO(unpack_here(here_, is_directory ? to : folder.to, *tar, links_));
    } else if (tar.error().code != Errc::body_too_large) {
      return std::unexpected(tar.error());
    } else if (is_directory) {
      const auto made = here_.folder.make_directory(to, {.mode = private_mode});
      if (!made) return refused_here(made.error(), here_);
      folders_.push_back({.from = from, .to = to});
    } else {
      BERTH_TRY(Bytes first, place_.read(from, 0, part_bytes));
      return take_file(place_, from, here_, to, std::move(first));
    }
    if (!is_new) return {};
    FolderLook look{.path = to, .mode = parse_mode(text_of(entry, "mode"), private_mode)};
    if (const auto mtime = parse_iso8601(text_of(entry, "mtime"))) look.mtime = *mtime;
    looks_.push_back(std::move(look));
    return {};
  }

  // Runs when everything was copied, the deepest first: filling a folder changes its time, and a
  // closed one cannot be filled or passed.
  Result<> finish() const {
    for (auto look = looks_.rbegin(); look != looks_.rend(); ++look) {
      const Fd folder{workspaces::open_beneath(here_.folder.root(), look->path,
                                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                               workspaces::Mounts::refused)};
      if (!folder) return workspaces::disk_failure("open", look->path, errno);
      BERTH_DO(workspaces::set_look(folder.get(), look->mode, {}, look->path));
      if (!look->mtime) continue;
      const timespec at = workspaces::timespec_of(*look->mtime);
      const timespec times[] = {at, at};
      if (::futimens(folder.get(), times) != 0) {
        return workspaces::disk_failure("date", look->path, errno);
      }
    }
    return {};
  }

  const Place& place_;
  const Here& here_;
  LinkRule links_;
  std::vector<Folder> folders_;
  std::vector<FolderLook> looks_;
};

Result<> take_folder(const Place& place, const std::string& from, const std::string& to,
                     LinkRule links) {
  const Result<Bytes> tar = place.archive(from);
  if (!tar && tar.error().code != Errc::body_too_large) return std::unexpected(tar.error());
  BERTH_TRY(NewFolders made, NewFolders::make(to));
  BERTH_TRY(Fd folder, open_here(to, O_PATH | O_DIRECTORY));
  const Here here{.folder = Confined{std::move(folder)}, .path = to};
  if (tar) {
    BERTH_DO(unpack_here(here, "", *tar, links));
  } else {
    BERTH_DO(PartwiseCopy(place, here, links).run(from));
  }
  made.keep();
  return {};
}

Result<> copy_out(const Place& place, const std::string& from, std::string to, LinkRule links) {
  BERTH_TRY(Bytes first, place.read(from, 0, part_bytes));
  if (is_folder(first)) return take_folder(place, from, to, links);
  struct stat status{};
  if (::stat(to.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && !to.ends_with('/')) to += '/';
  const std::string path = with_name(std::move(to), from);
  BERTH_TRY(Fd folder, open_here(parent_folder(path), O_PATH | O_DIRECTORY));
  const Here here{.folder = Confined{std::move(folder)}, .path = parent_folder(path)};
  return take_file(place, from, here, last_name(path), std::move(first));
}

Result<> copy(Context& context, const CopyOptions& options) {
  const std::optional<There> from = parse_there(options.from);
  const std::optional<There> to = parse_there(options.to);
  if (from.has_value() == to.has_value()) {
    return fail(Errc::bad_request, "exactly one of the two is to be PLACE:PATH",
                "berth cp file last:file, or berth cp last:file file; PLACE is a run, a lease or a "
                "sandbox");
  }
  BERTH_TRY(const Place place, Place::find(context, from ? *from : *to));
  if (to) return copy_in(place, options.from, to->path);
  return copy_out(place, from->path, options.to,
                  options.takes_all_links ? LinkRule::any : LinkRule::inside);
}

Result<> list_files(Context& context, const std::string& named) {
  const std::vector<Column> columns = {
      {.title = "MODE", .key = "mode"},
      {.title = "SIZE", .key = "bytes", .shown = Shown::bytes},
      {.title = "MODIFIED", .key = "mtime", .shown = Shown::moment},
      {.title = "TYPE", .key = "type"},
      {.title = "NAME", .key = "name"},
      {.title = "TARGET", .key = "target"}};
  const There there = parse_there(named).value_or(There{.place = named, .path = {}});
  BERTH_TRY(const Place place, Place::find(context, there));
  BERTH_TRY(const Bytes found, place.read(there.path, 0, 1));
  if (!is_folder(found)) {
    return fail(Errc::path_refused, there.path + ": is a file, no folder",
                "copy it with 'berth cp'");
  }
  BERTH_TRY(const Listing listing, parse_listing(found));
  context.printer().list(listing.entries, columns);
  return {};
}

}  // namespace

void add_file_commands(CommandTree& tree) {
  const auto options = std::make_shared<CopyOptions>();
  CLI::App& copies =
      tree.leaf(tree.root(), "cp", "copy a file or a folder into the place of a run, or out",
                "berth cp report.txt last:in/",
                [options](Context& context) { return copy(context, *options); });
  copies
      .add_option("from", options->from,
                  "a path, or PLACE:PATH; PLACE is a run, a lease, a sandbox or 'last'")
      ->required();
  copies
      .add_option("to", options->to,
                  "the same; a file goes into what ends with '/', what a folder holds goes into "
                  "the folder named here")
      ->required();
  copies.add_flag(
      "--links", options->takes_all_links,
      "out of a place: make links as they are written, also those that lead out of what "
      "is copied");
  const auto named = std::make_shared<std::string>();
  tree.leaf(tree.root(), "ls", "list a folder in the place of a run", "berth ls last:/tmp",
            [named](Context& context) { return list_files(context, *named); })
      .add_option("folder", *named, "PLACE:PATH; without a path: where its commands work")
      ->required();
}

}  // namespace berth::cli
