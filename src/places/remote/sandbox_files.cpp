#include "places/remote/sandbox_files.hpp"

#include "base/base64.hpp"
#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "places/remote/file_scripts.hpp"
#include "plugins/box.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace berth::places::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t file_piece_bytes = std::size_t{3}
                                         << 20;  // 4 MiB as base64: Node can read the line
constexpr std::size_t small_block = std::size_t{64} << 10;
constexpr std::size_t listing_bytes_max = std::size_t{4} << 20;
constexpr int list_attempts_max = 3;
constexpr std::chrono::milliseconds long_step = 5min;  // over a whole tree
// The prefix that providers reserve for unfinished files.
constexpr std::string_view scratch_stem = ".paperclip-upload-";

std::string shown(std::string_view path) {
  return "path '" + as_utf8(clipped(path, 512)) + "'";
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), mode & 07777, 8);
  return {text.data(), end};
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Numbers separated by blanks; false for anything else.
template <std::size_t count>
bool read_numbers(std::string_view line, std::array<std::uint64_t, count>& numbers,
                  int first_base = 10) {
  for (std::size_t i = 0; i < count; ++i) {
    while (line.starts_with(' ')) line.remove_prefix(1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), numbers[i],
                                              i == 0 ? first_base : 10);
    if (error != std::errc{}) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  return line.find_first_not_of(" \r\n") == std::string_view::npos;
}

// "81a4 12 1700000000 1": mode in hex, size, time, links.
std::optional<struct stat> status_of(std::string_view line) {
  std::array<std::uint64_t, 4> numbers{};
  if (!read_numbers(line, numbers, 16)) return std::nullopt;
  constexpr std::uint64_t size_max = std::uint64_t{1} << 62;
  if (numbers[0] > 0xffff || numbers[1] > size_max || numbers[2] > size_max) return std::nullopt;
  struct stat status{};
  status.st_mode = static_cast<mode_t>(numbers[0]);
  status.st_size = static_cast<off_t>(numbers[1]);
  status.st_blocks = status.st_size / 512 + 1;  // holes are not measured
  status.st_mtim.tv_sec = static_cast<time_t>(numbers[2]);
  status.st_nlink = numbers[3];
  return status;
}

// The output of readlink, without its line end.
std::string target_of(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<std::string> at_each_nul(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    all.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::optional<std::vector<std::string>> texts_after(std::string_view key, std::string_view line) {
  if (!line.starts_with(key)) return std::nullopt;
  const std::optional<std::string> bytes = parse_base64(line.substr(key.size()));
  if (!bytes) return std::nullopt;
  return at_each_nul(*bytes);
}

bool is_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') && name.size() <= 255;
}

enum class Group { taken, cut, torn };

// One group of the listing. torn: an entry vanished between the steps.
Group take_group(std::string_view& text, RemoteListing& listing) {
  std::vector<struct stat> found;
  std::string_view line = next_line(text);
  for (; !line.starts_with("names "); line = next_line(text)) {
    const auto status = status_of(line);
    if (!status) return text.empty() ? Group::cut : Group::torn;
    found.push_back(*status);
    if (text.empty()) return Group::cut;
  }
  const auto names = texts_after("names ", line);
  const bool is_whole = text.contains('\n');
  const auto targets = texts_after("targets ", next_line(text));
  if (!names || !targets || !is_whole) return Group::cut;
  if (names->size() != found.size() || targets->size() != found.size()) return Group::torn;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::string name = (*names)[i];
    if (name.starts_with("./")) name.erase(0, 2);
    if (!is_name(name)) return Group::torn;
    listing.entries.push_back(
        {.name = std::move(name), .status = found[i], .target = target_of((*targets)[i])});
  }
  return Group::taken;
}

// Nothing when it is torn.
std::optional<RemoteListing> parse_listing(std::string_view text, std::size_t entries_max) {
  RemoteListing listing;
  const bool is_cut = text.size() >= listing_bytes_max;
  while (!text.empty()) {
    const Group group = take_group(text, listing);
    if (group == Group::torn || (group == Group::cut && !is_cut)) return std::nullopt;
    if (group == Group::cut) break;
  }
  const bool is_long = listing.entries.size() > entries_max;
  if (is_long) listing.entries.resize(entries_max);
  if (is_cut || is_long) listing.extent = RemoteListing::Extent::cut;
  return listing;
}

// Tool messages are the same everywhere without a locale, and commands have none.
std::unexpected<Error> step_failure(std::string_view path, std::int64_t exit_code,
                                    const std::string& said) {
  const std::string object = shown(path) + ": ";
  if (exit_code == file_scripts::not_there) {
    return fail(Errc::file_not_found, object + "is not there");
  }
  if (exit_code == file_scripts::does_not_fit) {
    return fail(Errc::path_refused, object + "is there and no regular file", "remove it first");
  }
  if (exit_code == file_scripts::arrived_changed) {
    return fail(Errc::plugin_call_failed, object + "what arrived is not what was sent");
  }
  for (const std::string_view rule : {"Permission denied", "Read-only file system"}) {
    if (said.contains(rule)) {
      return fail(Errc::path_refused, object + "is closed to commands of the sandbox");
    }
  }
  if (said.contains("No space left")) {
    return fail(Errc::store_full, object + "there is no room in the sandbox");
  }
  return fail(Errc::plugin_call_failed,
              object + "a transfer command ended with " + std::to_string(exit_code) + ": " +
                  as_utf8(clipped(said, 500)),
              "the sandbox needs sh, base64, dd, find, xargs, stat and tar, and room for the file");
}

std::unexpected<Error> changed(std::string_view path) {
  return fail(Errc::conflict, shown(path) + ": changed while it was read", "try again");
}

}  // namespace

auto SandboxFiles::place_of(const PlaceRef& lease) const -> Task<Site> {
  BERTH_CO_TRY(Site place, co_await provider_.place_of(lease));
  if (place.plugin->advertises("environmentExecute")) co_return place;
  co_return fail(Errc::execution_unsupported,
                 place.driver.plugin_key + " runs no commands, so its files cannot be reached");
}

Task<RemotePlace::Output> SandboxFiles::run(const Site& place, Step step) const {
  RemotePlace::SmallCommand command{
      .script = file_scripts::with_words(step.script, step.words.size()),
      .input = std::move(step.input),
      .time = step.time};
  for (const std::string& word : step.words) command.args.push_back(base64(word));
  co_return co_await provider_.run_small(place, std::move(command));
}

Task<std::string> SandboxFiles::must(const Site& place, Step step) const {
  const std::string path = step.words.front();
  BERTH_CO_TRY(RemotePlace::Output output, co_await run(place, std::move(step)));
  if (output.exit_code == 0) co_return std::move(output.out);
  co_return step_failure(path, output.exit_code, output.err);
}

std::string SandboxFiles::scratch_name() const {
  Host& host = provider_.host_;
  return std::string{scratch_stem} + make_uuid(host.random(), host.clock().now());
}

Task<RemoteLook> SandboxFiles::look(const PlaceRef& lease, const RemotePath& path) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  co_return co_await look_in(place, path);
}

Task<RemoteLook> SandboxFiles::look_in(const Site& place, const RemotePath& path) const {
  Step step{.script = file_scripts::look, .words = {path.folder, path.rest}};
  BERTH_CO_TRY(const RemotePlace::Output output, co_await run(place, std::move(step)));
  if (output.exit_code != 0) {
    co_return step_failure(path.text(), output.exit_code, output.err);
  }
  std::string_view text = output.out;
  const std::string_view line = next_line(text);
  if (line == "none") co_return RemoteLook{};
  if (line == "link") co_return RemoteLook{.way = RemoteLook::Way::through_link};
  if (line == "file") co_return RemoteLook{.way = RemoteLook::Way::through_file};
  const auto status = status_of(line);
  const auto target = parse_base64(text);
  if (!status || !target) {
    co_return fail(Errc::plugin_protocol, shown(path.text()) + ": the look at it says " +
                                              in_quotes(clipped(output.out, 100)));
  }
  const std::string name = path.rest.substr(path.rest.rfind('/') + 1);
  co_return RemoteLook{.way = RemoteLook::Way::there,
                       .entry = {.name = name, .status = *status, .target = target_of(*target)}};
}

Task<RemoteListing> SandboxFiles::list(const PlaceRef& lease, const RemotePath& path,
                                       std::size_t entries_max) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  for (int attempt = 0; attempt < list_attempts_max; ++attempt) {
    Step step{.script = file_scripts::list,
              .words = {path.text(), std::to_string(listing_bytes_max)}};
    BERTH_CO_TRY(const std::string said, co_await must(place, std::move(step)));
    std::optional<RemoteListing> listing = parse_listing(said, entries_max);
    if (listing) co_return *std::move(listing);
  }
  co_return changed(path.text());
}

Task<> SandboxFiles::remove(const PlaceRef& lease, const RemotePath& path) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  Step step{.script = file_scripts::remove, .words = {path.text()}, .time = long_step};
  BERTH_CO_DO(co_await must(place, std::move(step)));
  co_return Result<>{};
}

Task<std::string> SandboxFiles::read(const PlaceRef& lease, const RemotePath& path,
                                     std::uint64_t offset, std::uint64_t count) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  co_return co_await read_from(place, path.text(), offset, count);
}

Task<std::string> SandboxFiles::read_from(const Site& place, const std::string& path,
                                          std::uint64_t offset, std::uint64_t count) const {
  const std::uint64_t block = count <= small_block ? small_block : file_piece_bytes;
  std::string all;
  while (all.size() < count) {
    const std::uint64_t at = offset + all.size();
    Step step{.script = file_scripts::read,
              .words = {path, std::to_string(block), std::to_string(at / block)}};
    BERTH_CO_TRY(const std::string said, co_await must(place, std::move(step)));
    const std::optional<std::string> bytes = parse_base64(said);
    const std::uint64_t skip = at % block;
    const std::uint64_t wanted = std::min(block - skip, count - all.size());
    if (!bytes || bytes->size() > block || bytes->size() < skip + wanted) co_return changed(path);
    all.append(*bytes, skip, wanted);
  }
  co_return all;
}

Task<> SandboxFiles::write(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                           std::string_view bytes) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const std::string scratch = parent_of(path.text()) + "/" + scratch_name();
  Result<> written = co_await write_to(place, path, scratch, mode, bytes);
  if (!written) co_await abandon(lease, {.scratch = scratch});
  co_return written;
}

Task<> SandboxFiles::write_to(const Site& place, const RemotePath& path, const std::string& scratch,
                              mode_t mode, std::string_view bytes) const {
  Step begin{.script = file_scripts::begin_file, .words = {parent_of(scratch), scratch}};
  BERTH_CO_DO(co_await must(place, std::move(begin)));
  BERTH_CO_DO(co_await append(place, scratch, bytes));
  co_return co_await finish_file(place, scratch, path, mode, bytes.size());
}

Task<> SandboxFiles::append(const Site& place, const std::string& scratch,
                            std::string_view bytes) const {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(file_piece_bytes, bytes.size()))) {
    Step step{.script = file_scripts::append,
              .words = {scratch},
              .input = base64(bytes.substr(0, file_piece_bytes))};
    BERTH_CO_DO(co_await must(place, std::move(step)));
  }
  co_return Result<>{};
}

Task<> SandboxFiles::finish_file(const Site& place, const std::string& scratch,
                                 const RemotePath& path, mode_t mode, std::uint64_t bytes) const {
  Step step{.script = file_scripts::finish_file,
            .words = {scratch, path.text(), octal(mode), std::to_string(bytes)}};
  BERTH_CO_TRY(const RemotePlace::Output output, co_await run(place, std::move(step)));
  if (output.exit_code == 0) co_return Result<>{};
  co_return step_failure(path.text(), output.exit_code, output.err);
}

Task<std::string> SandboxFiles::pack(const PlaceRef& lease, const RemotePath& path,
                                     std::size_t bytes_max) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  // The commands' folder has space and is writable.
  const std::string scratch = (path.folder == "/" ? "/tmp" : path.folder) + "/" + scratch_name();
  Result<std::string> tar = co_await pack_to(place, path, scratch, bytes_max);
  co_await abandon(lease, {.scratch = scratch});
  co_return tar;
}

Task<std::string> SandboxFiles::pack_to(const Site& place, const RemotePath& path,
                                        const std::string& scratch, std::size_t bytes_max) const {
  const std::string whole = path.text();
  BERTH_CO_TRY(const RemoteLook found, co_await look_in(place, path));
  const bool is_folder = S_ISDIR(found.entry.status.st_mode);
  Step step{
      .script = file_scripts::pack,
      .words = {is_folder ? whole : parent_of(whole), is_folder ? "." : "./" + found.entry.name,
                scratch, std::to_string(bytes_max + 1)},
      .time = long_step};
  BERTH_CO_TRY(const RemotePlace::Output output, co_await run(place, std::move(step)));
  std::array<std::uint64_t, 2> numbers{};
  if (output.exit_code != 0 || !read_numbers(output.out, numbers)) {
    co_return step_failure(whole, output.exit_code, output.err);
  }
  const auto [size, end] = numbers;
  if (size > bytes_max) co_return std::string(bytes_max + 1, '\0');
  if (end != 0) co_return step_failure(whole, static_cast<std::int64_t>(end), output.err);
  co_return co_await read_from(place, scratch, 0, size);
}

Task<std::optional<std::string>> SandboxFiles::find_unfit(const PlaceRef& lease,
                                                          const RemotePath& path) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  Step step{.script = file_scripts::find_unfit, .words = {path.text()}, .time = long_step};
  BERTH_CO_TRY(const std::string said, co_await must(place, std::move(step)));
  const std::vector<std::string> names = at_each_nul(parse_base64(said).value_or("?"));
  if (names.empty()) co_return std::optional<std::string>{};
  co_return std::optional{names.front()};
}

auto SandboxFiles::open_draft(const Site& place, const RemotePath& path) const -> Task<Draft> {
  const std::string target = path.text();
  const std::string name = scratch_name();
  Draft draft{.folder = target + "/" + name, .scratch = target + "/" + name + ".tar"};
  Step step{.script = file_scripts::open_draft, .words = {target, draft.folder}};
  BERTH_CO_TRY(const std::string top, co_await must(place, std::move(step)));
  draft.top = parse_base64(top).value_or("");
  // The path comes from the sandbox, and empty folders below it may be deleted.
  if (!target.starts_with(draft.top)) draft.top.clear();
  co_return draft;
}

Task<> SandboxFiles::place_draft(const Site& place, const RemotePath& path, const Draft& draft,
                                 const std::string& tar) const {
  Step step{.script = file_scripts::place_draft,
            .words = {path.text(), draft.folder, tar},
            .time = long_step};
  BERTH_CO_TRY(const RemotePlace::Output output, co_await run(place, std::move(step)));
  if (output.exit_code == 0) co_return Result<>{};
  if (output.exit_code == file_scripts::does_not_fit) {
    co_return fail(Errc::path_refused,
                   shown(parse_base64(output.out).value_or("?")) +
                       ": is there as something else, or behind a symbolic link",
                   "remove it first");
  }
  co_return step_failure(path.text(), output.exit_code, output.err);
}

Task<> SandboxFiles::unpack(const PlaceRef& lease, const RemotePath& path, std::string_view tar) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_TRY(const Draft draft, co_await open_draft(place, path));
  Result<> unpacked = co_await unpack_to(place, path, draft, tar);
  if (!unpacked) co_await abandon(lease, draft);
  co_return unpacked;
}

Task<> SandboxFiles::unpack_to(const Site& place, const RemotePath& path, const Draft& draft,
                               std::string_view tar) const {
  Step begin{.script = file_scripts::begin_file, .words = {path.text(), draft.scratch}};
  BERTH_CO_DO(co_await must(place, std::move(begin)));
  BERTH_CO_DO(co_await append(place, draft.scratch, tar));
  co_return co_await place_draft(place, path, draft, draft.scratch);
}

Exchange SandboxFiles::exchange(const PlaceRef& lease, const RemotePath& path) {
  Exchange exchange{.folder = provider_.host_.config().exchange_folder};
  const auto can = provider_.capabilities(lease, core::LeasePolicy::ephemeral);
  const auto found = provider_.find(lease.config, lease.metadata);
  const auto plugin = found ? provider_.host_.find(found->plugin_id) : nullptr;
  // Both directions are required, and a path that is not valid text cannot be sent.
  const bool is_native =
      plugin && can.native_sync_in && can.native_sync_out && !refuses_sync_.contains(lease.key);
  if (!is_native || !is_utf8(path.text())) return exchange;
  exchange.by = Exchange::By::provider;
  exchange.folder = exchange_folder_of(provider_.host_.config(), found->plugin_id);
  if (plugin->user()) {
    exchange.user = FileRoot::User{.uid = plugin->user()->uid, .gid = plugin->user()->gid};
  }
  return exchange;
}

Task<> SandboxFiles::move(const Site& place, Mapping mapping) {
  bj::object file{{"sourcePath", mapping.source},
                  {"targetPath", mapping.target},
                  {"kind", S_ISDIR(mapping.type) ? "directory" : "file"},
                  {"followSymlinks", false}};
  if (mapping.mode) file["mode"] = *mapping.mode;
  const std::string id = make_uuid(provider_.host_.random(), provider_.host_.clock().now());
  bj::object operation{{"operationId", id}, {"files", bj::array{std::move(file)}}};
  bj::object more{{"lease", place.lease}, {"operations", bj::array{std::move(operation)}}};
  const Result<bj::value> answer = co_await provider_.ask(place, mapping.method, more);
  if (!answer) {
    // The plugin's own transfer may not support this sandbox; commands do.
    if (answer.error().code == Errc::plugin_call_failed) {
      refuses_sync_.insert(mapping.key);
    }
    co_return std::unexpected(answer.error());
  }
  const auto done = peek<bj::array>(*answer, "operations");
  if (!done || done->size() != 1) {
    co_return fail(Errc::plugin_protocol,
                   mapping.method + ": the answer is not one entry per operation",
                   "report it to the author of the plugin");
  }
  co_return Result<>{};
}

Task<> SandboxFiles::fetch(const PlaceRef& lease, const RemotePath& path, mode_t type,
                           const std::string& local) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  Mapping mapping{.key = lease.key,
                  .method = "environmentSyncOut",
                  .source = path.text(),
                  .target = local,
                  .type = type};
  co_return co_await move(place, std::move(mapping));
}

Task<> SandboxFiles::send_file(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                               const std::string& local, std::uint64_t bytes) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const std::string scratch = parent_of(path.text()) + "/" + scratch_name();
  Step begin{.script = file_scripts::make_folder, .words = {parent_of(scratch)}};
  BERTH_CO_DO(co_await must(place, std::move(begin)));
  Mapping mapping{.key = lease.key,
                  .method = "environmentSyncIn",
                  .source = local,
                  .target = scratch,
                  .type = S_IFREG,
                  .mode = mode};
  Result<> sent = co_await move(place, std::move(mapping));
  if (sent) sent = co_await finish_file(place, scratch, path, mode, bytes);
  if (!sent) co_await abandon(lease, {.scratch = scratch});
  co_return sent;
}

Task<> SandboxFiles::send_folder(const PlaceRef& lease, const RemotePath& path,
                                 const std::string& local) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_TRY(const Draft draft, co_await open_draft(place, path));
  Mapping mapping{.key = lease.key,
                  .method = "environmentSyncIn",
                  .source = local,
                  .target = draft.folder,
                  .type = S_IFDIR};
  Result<> sent = co_await move(place, std::move(mapping));
  if (sent) sent = co_await place_draft(place, path, draft, "");
  if (!sent) co_await abandon(lease, draft);
  co_return sent;
}

asio::awaitable<void> SandboxFiles::abandon(const PlaceRef& lease, Draft draft) const {
  const Result<Site> place = co_await place_of(lease);
  if (!place) co_return;
  Step step{.script = file_scripts::abandon,
            .words = {draft.folder, draft.scratch, draft.top},
            .time = long_step};
  (void)co_await run(*place, std::move(step));
}

}  // namespace berth::places::remote
