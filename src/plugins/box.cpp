#include "plugins/box.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/stat.h>
#include <unistd.h>

namespace berth::plugins {
namespace {

// Whether the paths are equal or one contains the other.
bool overlap(const std::string& one, const std::string& other) {
  return (one + "/").starts_with(other + "/") || (other + "/").starts_with(one + "/");
}

bool is_in_range(const HostConfig& config, uid_t uid) {
  return uid >= config.first_user && uid < config.first_user + config.users_max;
}

std::optional<uid_t> owner_of(const HostConfig& config, const std::string& folder) {
  struct stat found{};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) return std::nullopt;
  return is_in_range(config, found.st_uid) ? std::optional{found.st_uid} : std::nullopt;
}

// A folder owned by the worker that no other user can enter.
Result<> make_own_folder(const std::string& folder, const std::optional<WorkerUser>& user) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return io_failure("make", folder, errno);
  }
  // lchown, because the plugin can write to the parent folder and could plant a link.
  if (user && ::lchown(folder.c_str(), user->uid, user->gid) != 0) {
    return io_failure("hand over", folder, errno);
  }
  return {};
}

}  // namespace

std::string files_folder_of(const HostConfig& config, const core::PluginId& id) {
  return config.files_folder + "/" + id.str();
}

std::string exchange_folder_of(const HostConfig& config, const core::PluginId& id) {
  return config.exchange_folder + "/" + id.str();
}

std::optional<WorkerUser> former_user(const HostConfig& config, const core::PluginId& id) {
  if (config.files_folder.empty()) return std::nullopt;
  const auto owner = owner_of(config, files_folder_of(config, id));
  if (!owner) return std::nullopt;
  return WorkerUser{.uid = *owner, .gid = *owner};
}

std::set<uid_t> users_of_folders(const HostConfig& config) {
  std::set<uid_t> users;
  if (config.files_folder.empty()) return users;
  const auto names = names_in(config.files_folder);
  if (!names) return users;
  for (const std::string& name : *names) {
    if (const auto owner = owner_of(config, config.files_folder + "/" + name)) {
      users.insert(*owner);
    }
  }
  return users;
}

Result<keeper::PluginBox> box_of(const HostConfig& config, const InstalledPlugin& plugin,
                                 const std::optional<WorkerUser>& user,
                                 const WorkerCommand& command) {
  keeper::PluginBox box{.readable = program_folders(command, plugin.package, config.home),
                        .least = config.least_isolation};
  if (box.readable.empty() || !command.folder.starts_with(box.readable.front())) {
    return fail(Errc::plugin_unavailable,
                "plugin " + plugin.manifest.id + ": its folder " + command.folder +
                    " holds the server's home, which no plugin may read",
                "move the plugin to a folder of its own, and install it again");
  }
  if (!config.files_folder.empty()) {
    BERTH_DO(make_directories(config.files_folder, 0711));
    const std::string files = files_folder_of(config, plugin.id);
    BERTH_DO(make_own_folder(files, user));
    box.tmp_folder = files + "/tmp";
    BERTH_DO(make_own_folder(box.tmp_folder, user));
    box.writable.push_back(files);
  }
  if (!config.exchange_folder.empty()) {
    const std::string exchange = exchange_folder_of(config, plugin.id);
    BERTH_DO(make_directories(exchange, 0711));
    box.writable.push_back(exchange);
  }
  for (const std::string& folder : config.shared_folders) {
    if (!folder.starts_with('/') || (!config.home.empty() && overlap(folder, config.home))) {
      return fail(Errc::config_invalid,
                  "plugin_folders: " + in_quotes(folder) +
                      " is not an absolute path, or shares files with the server's home",
                  "name a folder outside of " + config.home);
    }
    box.writable.push_back(folder);
  }
  if (config.way_out != nullptr) box.ports = config.way_out->ports();
  return box;
}

keeper::PluginBox reading_box(const WorkerCommand& command, const Package& package) {
  return {.readable = program_folders(command, package, "")};
}

Task<keeper::BoxArrivals> read_box_report(asio::any_io_executor executor, Fd report,
                                          std::chrono::milliseconds deadline) {
  asio::posix::stream_descriptor channel{executor, report.release()};
  asio::steady_timer limit{executor, deadline};
  bool late = false;
  limit.async_wait([&channel, &late](const boost::system::error_code& error) {
    if (error) return;
    late = true;
    boost::system::error_code ignored;
    channel.cancel(ignored);
  });
  keeper::BoxArrivals arrived;
  while (true) {
    BERTH_CO_TRY(const keeper::BoxArrival arrival,
                 keeper::receive_from_box(channel.native_handle(), arrived));
    if (arrival == keeper::BoxArrival::complete) break;
    if (arrival == keeper::BoxArrival::more) continue;
    const auto [error] = co_await channel.async_wait(asio::posix::descriptor_base::wait_read,
                                                     asio::as_tuple(asio::use_awaitable));
    if (late || error) {
      co_return fail(Errc::timed_out, "the keeper did not make the plugin's box in time");
    }
  }
  limit.cancel();
  if (arrived.report.failure.empty()) co_return arrived;
  std::string remedy;
  for (const keeper::Missing& missing : arrived.report.missing) {
    if (remedy.contains(missing.remedy)) continue;
    remedy += (remedy.empty() ? "" : "; ") + missing.remedy;
  }
  co_return fail(Errc::isolation_too_weak, arrived.report.failure, std::move(remedy));
}

}  // namespace berth::plugins
