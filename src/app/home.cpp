#include "app/home.hpp"

#include "base/files.hpp"
#include "base/json/json.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace berth::app {
namespace {

struct Whereabouts {
  std::string url;
  std::int64_t pid = 0;
};
BOOST_DESCRIBE_STRUCT(Whereabouts, (), (url, pid))

constexpr std::size_t file_bytes_max = 4096;
constexpr std::size_t nodes_max = 32;

}  // namespace

Result<Home> Home::open(std::string path) {
  Result<> made = make_directories(path, 0700);
  if (!made) {
    made.error().remedy = "name a folder that this user may write: --home DIR or BERTH_HOME";
    return std::unexpected(std::move(made).error());
  }
  const std::string lock_file = path + "/lock";
  Fd lock{::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (!lock) return io_failure("open", lock_file, errno);
  // The kernel releases it when the process ends, however it ends.
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Errc::conflict, path + " is the home of a server that runs",
                "stop that server, or give this one another home: --home DIR");
  }
  return Home{std::move(path), std::move(lock)};
}

Result<> Home::let_others_through() const {
  BERTH_TRY(const std::vector<std::string> names, names_in(path_));
  for (const std::string& name : names) {
    const std::string entry = path_ + "/" + name;
    struct stat found{};
    const bool is_for_plugins =
        entry == plugins_folder() || entry == exchange_folder() || entry == plugin_files_folder();
    if (is_for_plugins) continue;
    if (::lstat(entry.c_str(), &found) != 0) continue;
    const bool reachable = !S_ISLNK(found.st_mode) && (found.st_mode & 0077) != 0;
    if (reachable && ::chmod(entry.c_str(), found.st_mode & 07700) != 0) {
      return io_failure("close", entry, errno);
    }
  }
  if (::chmod(path_.c_str(), 0711) != 0) return io_failure("open", path_, errno);
  return {};
}

std::set<core::NodeId> Home::former_nodes() const {
  std::set<core::NodeId> nodes;
  const auto text = read_file(nodes_file(), file_bytes_max);
  if (!text) return nodes;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto id = core::NodeId::parse(rest.substr(0, end))) nodes.insert(*id);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return nodes;
}

Result<> Home::remember_node(const core::NodeId& node) const {
  // Ids grow with time, so the set is in start order.
  std::set<core::NodeId> nodes = former_nodes();
  nodes.insert(node);
  while (nodes.size() > nodes_max) nodes.erase(nodes.begin());
  std::string text;
  for (const core::NodeId& id : nodes) text += id.str() + "\n";
  return replace_file(nodes_file(), text, 0600);
}

Result<> Home::announce(const std::string& url) const {
  return replace_file(server_file(), encode_text(Whereabouts{url, ::getpid()}) + "\n", 0600);
}

void Home::withdraw() const {
  const auto text = read_file(server_file(), file_bytes_max);
  if (!text) return;
  const auto found = decode_text<Whereabouts>(*text, UnknownKeys::ignore);
  if (found && found->pid == ::getpid()) ::unlink(server_file().c_str());
}

Result<> Home::write_admin_key(const std::string& key) const {
  return replace_file(admin_key_file(), key + "\n", 0600);
}

void Home::remove_admin_key() const {
  ::unlink(admin_key_file().c_str());
}

}  // namespace berth::app
