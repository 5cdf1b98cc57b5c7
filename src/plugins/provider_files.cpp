#include "plugins/provider.hpp"

#include "base/base64.hpp"
#include "base/files.hpp"
#include "base/owned.hpp"
#include "plugins/provider_place.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

namespace berth::plugins {
namespace {

namespace fs = std::filesystem;
using execution::LeaseFacts;

constexpr std::size_t piece_bytes = std::size_t{3}
                                    << 20;  // 4 MiB as base64: a line that Node bears
constexpr std::size_t entries_max = 100'000;

// The scripts of a transfer by commands. $1 is the place in the sandbox, and a file becomes visible
// whole or not at all, with its mode.
constexpr std::string_view begin_script =
    "mkdir -p -- \"$(dirname -- \"$1\")\" && umask 077 && : >\"$1.paperclip-upload\"";
constexpr std::string_view append_script = "base64 -d >>\"$1.paperclip-upload\"";
constexpr std::string_view finish_script =
    "chmod \"$2\" -- \"$1.paperclip-upload\" && mv -f -- \"$1.paperclip-upload\" \"$1\"";
constexpr std::string_view folder_script = "rm -rf -- \"$1\" && mkdir -p -- \"$1\"";
constexpr std::string_view link_script =
    "mkdir -p -- \"$(dirname -- \"$1\")\" && ln -sfn -- \"$2\" \"$1\"";
constexpr std::string_view size_script = "wc -c <\"$1\"";
constexpr std::string_view read_script =
    "dd if=\"$1\" bs=3145728 skip=\"$2\" count=1 2>/dev/null | base64";
// Names as base64, one a line: they may hold anything.
constexpr std::string_view list_script =
    "cd -- \"$1\" && find . -type f -exec sh -c "
    "'for f; do printf %s \"${f#./}\" | base64 | tr -d \"\\n\"; echo; done' sh {} +";

bool is_excluded(const std::string& path, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    const fs::path relative{path};
    const bool whole = ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
    return whole || std::ranges::any_of(relative, [&](const fs::path& part) {
             return ::fnmatch(pattern.c_str(), part.c_str(), 0) == 0;
           });
  });
}

bool is_confined(std::string_view path) {
  const fs::path given{path};
  return given.is_absolute() &&
         std::ranges::none_of(given, [](const fs::path& part) { return part == ".."; });
}

std::string octal(int mode) {
  std::array<char, 16> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), mode & 07777, 8);
  return {text.data(), end};
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  return text;
}

bj::object wire_file(const SyncFile& file) {
  bj::object out{{"sourcePath", file.source_path},
                 {"targetPath", file.target_path},
                 {"kind", file.is_folder ? "directory" : "file"},
                 {"followSymlinks", file.follow_symlinks}};
  if (file.mode) out["mode"] = *file.mode;
  if (!file.exclude.empty()) out["exclude"] = encode(file.exclude);
  return out;
}

bj::object wire_operation(const SyncOperation& operation) {
  bj::array files;
  for (const SyncFile& file : operation.files) files.push_back(wire_file(file));
  bj::object out{{"operationId", operation.operation_id}, {"files", std::move(files)}};
  if (operation.after.empty()) return out;
  bj::array commands;
  for (const SyncCommand& after : operation.after) {
    bj::object command{{"command", after.command}};
    if (after.cwd) command["cwd"] = *after.cwd;
    if (after.timeout_ms) command["timeoutMs"] = *after.timeout_ms;
    commands.push_back(std::move(command));
  }
  out["postUploadCommands"] = std::move(commands);
  return out;
}

std::int64_t count_at(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value != nullptr && value->is_int64() ? std::max<std::int64_t>(value->get_int64(), 0) : 0;
}

void add(Synced& all, const Synced& some) {
  all.files += some.files;
  all.bytes += some.bytes;
}

Result<> check_paths(const std::vector<SyncOperation>& operations) {
  for (const SyncOperation& operation : operations) {
    for (const SyncFile& file : operation.files) {
      for (const std::string& path : {file.source_path, file.target_path}) {
        if (!is_confined(path)) {
          return fail(Errc::path_refused, in_quotes(path) + " is not absolute, or goes upwards");
        }
      }
    }
  }
  return {};
}

}  // namespace

Task<Synced> RemoteProvider::sync(const LeaseFacts& lease, std::string method,
                                  const std::vector<SyncOperation>& operations) {
  BERTH_CO_TRY(const Place place, co_await place_of(lease));
  bj::array wire;
  for (const SyncOperation& operation : operations) wire.push_back(wire_operation(operation));
  bj::object more{{"lease", place.lease}, {"operations", std::move(wire)}};
  BERTH_CO_TRY(const bj::value answer, co_await ask(place, method, std::move(more)));
  const bj::object* object = answer.if_object();
  const bj::value* done = object == nullptr ? nullptr : object->if_contains("operations");
  if (done == nullptr || !done->is_array() || done->get_array().size() != operations.size()) {
    co_return fail(Errc::plugin_protocol, method + ": the answer is not one entry per operation");
  }
  Synced all;
  for (const bj::value& one : done->get_array()) {
    if (!one.is_object()) continue;
    add(all, {count_at(one.get_object(), "filesTransferred"),
              count_at(one.get_object(), "bytesTransferred")});
  }
  co_return all;
}

Task<Synced> RemoteProvider::sync_in(const LeaseFacts& lease,
                                     std::vector<SyncOperation> operations) {
  BERTH_CO_DO(check_paths(operations));
  const auto can = capabilities(lease, core::LeasePolicy::ephemeral);
  if (can.native_sync_in && can.native_sync_out) {
    co_return co_await sync(lease, "environmentSyncIn", operations);
  }
  BERTH_CO_TRY(const Place place, co_await place_of(lease));
  Synced all;
  for (const SyncOperation& operation : operations) {
    for (const SyncFile& file : operation.files) {
      BERTH_CO_TRY(const Synced some, co_await push(place, file));
      add(all, some);
    }
    BERTH_CO_DO(co_await run_after(place, operation.after));
  }
  co_return all;
}

Task<Synced> RemoteProvider::sync_out(const LeaseFacts& lease,
                                      std::vector<SyncOperation> operations) {
  BERTH_CO_DO(check_paths(operations));
  const auto can = capabilities(lease, core::LeasePolicy::ephemeral);
  if (can.native_sync_in && can.native_sync_out) {
    co_return co_await sync(lease, "environmentSyncOut", operations);
  }
  BERTH_CO_TRY(const Place place, co_await place_of(lease));
  Synced all;
  for (const SyncOperation& operation : operations) {
    for (const SyncFile& file : operation.files) {
      BERTH_CO_TRY(const Synced some, co_await pull(place, file));
      add(all, some);
    }
  }
  co_return all;
}

Task<Synced> RemoteProvider::push(const Place& place, const SyncFile& file) const {
  if (!file.is_folder) {
    co_return co_await push_file(place, file.source_path, file.target_path, file.mode);
  }
  BERTH_CO_DO(co_await must_run(place, folder_script, {file.target_path}, ""));
  std::error_code error;
  const auto options = file.follow_symlinks ? fs::directory_options::follow_directory_symlink
                                            : fs::directory_options::none;
  Synced all;
  std::size_t entries = 0;
  for (auto at = fs::recursive_directory_iterator(file.source_path, options, error);
       !error && at != fs::recursive_directory_iterator{}; at.increment(error)) {
    const std::string relative = at->path().lexically_relative(file.source_path).string();
    if (is_excluded(relative, file.exclude)) {
      if (at->is_directory(error)) at.disable_recursion_pending();
      continue;
    }
    if (++entries > entries_max) {
      co_return fail(Errc::command_too_large, file.source_path + " holds too many files",
                     "use a provider that transfers folders by itself");
    }
    const std::string target = file.target_path + "/" + relative;
    if (at->is_symlink(error) && !file.follow_symlinks) {
      const std::string aim = fs::read_symlink(at->path(), error).string();
      BERTH_CO_DO(co_await must_run(place, link_script, {target, aim}, ""));
      ++all.files;
    } else if (at->is_regular_file(error)) {
      const std::string source = at->path().string();
      BERTH_CO_TRY(const Synced some, co_await push_file(place, source, target, std::nullopt));
      add(all, some);
    }
  }
  if (error) co_return fail(Errc::io_failed, "read " + file.source_path + ": " + error.message());
  co_return all;
}

Task<Synced> RemoteProvider::push_file(const Place& place, const std::string& source,
                                       const std::string& target, std::optional<int> mode) const {
  Fd in{::open(source.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat facts{};
  if (!in || ::fstat(in.get(), &facts) != 0) co_return io_failure("open", source, errno);
  BERTH_CO_DO(co_await must_run(place, begin_script, {target}, ""));
  Synced all{.files = 1};
  std::string piece(piece_bytes, '\0');
  while (true) {
    const ssize_t size = ::read(in.get(), piece.data(), piece.size());
    if (size < 0) co_return io_failure("read", source, errno);
    if (size == 0) break;
    std::string text = base64({piece.data(), static_cast<std::size_t>(size)});
    BERTH_CO_DO(co_await must_run(place, append_script, {target}, std::move(text)));
    all.bytes += size;
  }
  const std::string bits = octal(mode.value_or(static_cast<int>(facts.st_mode & 07777U)));
  BERTH_CO_DO(co_await must_run(place, finish_script, {target, bits}, ""));
  co_return all;
}

Task<Synced> RemoteProvider::pull(const Place& place, const SyncFile& file) const {
  if (!file.is_folder) {
    co_return co_await pull_file(place, file.source_path, file.target_path);
  }
  BERTH_CO_TRY(const std::string names,
               co_await must_run(place, list_script, {file.source_path}, ""));
  Synced all;
  std::size_t entries = 0;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find('\n', at), names.size());
    const auto name = parse_base64(names.substr(at, end - at));
    at = end + 1;
    // The name is the sandbox's word: it may not lead out of the folder.
    const bool inside = name && !name->empty() && !name->starts_with('/') &&
                        !name->contains('\0') && is_confined("/" + *name);
    if (!inside || is_excluded(*name, file.exclude)) continue;
    if (++entries > entries_max) {
      co_return fail(Errc::command_too_large, file.source_path + " holds too many files");
    }
    const std::string source = file.source_path + "/" + *name;
    const std::string target = file.target_path + "/" + *name;
    BERTH_CO_TRY(const Synced some, co_await pull_file(place, source, target));
    add(all, some);
  }
  co_return all;
}

Task<Synced> RemoteProvider::pull_file(const Place& place, const std::string& source,
                                       const std::string& target) const {
  BERTH_CO_TRY(const std::string count, co_await must_run(place, size_script, {source}, ""));
  const std::string digits = without_spaces(count);
  std::int64_t size = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (size < 0) co_return fail(Errc::file_not_found, source + " has no size in the sandbox");
  BERTH_CO_DO(make_directories(parent_of(target), 0755));
  const std::string staged = target + ".berth-download";
  Fd out{::open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!out) co_return io_failure("create", staged, errno);
  Synced all{.files = 1};
  for (std::int64_t index = 0; all.bytes < size; ++index) {
    BERTH_CO_TRY(const std::string text,
                 co_await must_run(place, read_script, {source, std::to_string(index)}, ""));
    const auto bytes = parse_base64(without_spaces(text));
    if (!bytes || bytes->empty()) {
      co_return fail(Errc::plugin_call_failed, source + " changed, or was cut, while it was read");
    }
    const ssize_t written = ::write(out.get(), bytes->data(), bytes->size());
    if (written != static_cast<ssize_t>(bytes->size()))
      co_return io_failure("write", staged, errno);
    all.bytes += written;
  }
  if (::rename(staged.c_str(), target.c_str()) != 0) co_return io_failure("rename", target, errno);
  co_return all;
}

Task<> RemoteProvider::run_after(const Place& place,
                                 const std::vector<SyncCommand>& commands) const {
  for (const SyncCommand& command : commands) {
    std::string script = command.cwd ? "cd -- \"$1\" && " : "";
    script += command.command;
    BERTH_CO_DO(co_await must_run(place, script, {command.cwd.value_or("/")}, ""));
  }
  co_return Result<>{};
}

// A command that must succeed; what it said.
Task<std::string> RemoteProvider::must_run(const Place& place, std::string_view script,
                                           std::vector<std::string> args, std::string input) const {
  const std::string what = args.empty() ? "" : args.front();
  BERTH_CO_TRY(Output output,
               co_await run_small(place, std::string{script}, std::move(args), std::move(input)));
  if (output.exit_code == 0) co_return std::move(output.out);
  co_return fail(Errc::plugin_call_failed,
                 "a transfer command for " + in_quotes(what) + " ended with " +
                     std::to_string(output.exit_code) + ": " +
                     std::string{clipped(as_utf8(output.err), 500)},
                 "the sandbox needs sh, base64, dd and room for the file");
}

}  // namespace berth::plugins
