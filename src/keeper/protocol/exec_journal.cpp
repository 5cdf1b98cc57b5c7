#include "keeper/protocol/exec_journal.hpp"

#include "base/files.hpp"
#include "keeper/protocol/text_record.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace berth::keeper {
namespace {

constexpr std::string_view separator = "\n\n";  // the first ends a line that was cut short
constexpr std::string_view first_line = "\nexec_id ";
// The largest record without a message. A command with a lingering tree ends twice.
constexpr std::size_t plain_bytes_max = 1280;
constexpr off_t record_room = 2 * plain_bytes_max;
constexpr std::size_t spare_records = 4;
// The wanted record is usually near the end.
constexpr std::size_t first_look_bytes = std::size_t{64} << 10;
constexpr std::size_t journal_bytes_max = std::size_t{256} << 20;

// At most the last `bytes_max` bytes of the journal; all of it if `is_all`.
struct Tail {
  std::string text = {};
  bool is_all = true;
};

Result<Tail> read_tail(const std::string& folder, std::size_t bytes_max) {
  const std::string path = folder + "/" + journal_file;
  const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file && errno == ENOENT) return Tail{};
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return io_failure("open", path, errno);
  const auto size = static_cast<std::size_t>(found.st_size);
  const std::size_t from = size - std::min(size, bytes_max);
  ::lseek(file.get(), static_cast<off_t>(from), SEEK_SET);
  BERTH_TRY(std::string text, read_fd(file.get(), journal_bytes_max, path));
  return Tail{.text = std::move(text), .is_all = from == 0};
}

// The record that starts after this newline; empty if it is incomplete.
Result<std::optional<Ended>> record_at(std::string_view text, std::size_t newline) {
  text.remove_prefix(newline + 1);
  const std::size_t end = text.find(separator);
  if (end != std::string_view::npos) text = text.substr(0, end + 1);
  if (!text_record_detail::is_whole(text)) return std::nullopt;
  BERTH_TRY(Ended record, from_text<Ended>(text, journal_file));
  return record;
}

Result<std::optional<Ended>> last_record(std::string_view text, const std::string& exec_id) {
  const std::string wanted = std::string{first_line} + exec_id + "\n";
  std::size_t at = text.rfind(wanted);
  while (at != std::string_view::npos) {
    BERTH_TRY(std::optional<Ended> record, record_at(text, at));
    if (record || at == 0) return record;
    at = text.rfind(wanted, at - 1);
  }
  return std::nullopt;
}

}  // namespace

Result<> ExecJournal::append(const Ended& record) {
  const std::string text = std::string{separator} + to_text(record);
  if (text.size() > plain_bytes_max) {
    // The outcome fits into the reserved room, however long the message is.
    Ended plain = record;
    plain.message.clear();
    plain.remedy.clear();
    BERTH_DO(write(std::string{separator} + to_text(plain)));
  }
  return write(text);
}

Result<> ExecJournal::write(std::string_view text) {
  if (!file_) {
    file_ = Fd{::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)};
    struct stat made{};
    if (!file_ || ::fstat(file_.get(), &made) != 0) return io_failure("create", path_, errno);
    block_ = std::max<off_t>(made.st_blksize, 1);
  }
  const ssize_t wrote = ::write(file_.get(), text.data(), text.size());
  if (wrote > 0) {
    end_ += wrote;
    // A write allocates a whole block. The rest of the block needs no reservation, and a block that
    // is deleted soon never reaches the disk.
    reserved_ = std::max(reserved_, (end_ + block_ - 1) / block_ * block_);
  }
  if (wrote != static_cast<ssize_t>(text.size())) {
    return io_failure("write", path_, wrote < 0 ? errno : ENOSPC);
  }
  return {};
}

void ExecJournal::reserve(std::size_t records) {
  const auto room = [&](std::size_t count) {
    return end_ + record_room * static_cast<off_t>(count);
  };
  if (!file_ || room(records) <= reserved_) return;
  const off_t wanted = room(records + spare_records);
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, wanted) == 0) reserved_ = wanted;
}

Result<std::optional<Ended>> find_exec(const std::string& folder, const std::string& exec_id) {
  for (std::size_t bytes = first_look_bytes;; bytes *= 16) {
    BERTH_TRY(const Tail tail, read_tail(folder, bytes));
    BERTH_TRY(std::optional<Ended> found, last_record(tail.text, exec_id));
    if (found || tail.is_all) return found;
  }
}

Result<Ended> read_exit(const std::string& folder, const std::string& exec_id) {
  BERTH_TRY(std::optional<Ended> found, find_exec(folder, exec_id));
  if (found && found->outcome != Outcome::running) return *std::move(found);
  return fail(Errc::exec_not_found, "exec " + exec_id + ": has no exit record",
              "it still runs, never started, or belongs to another keeper");
}

Result<std::map<std::string, Ended>> read_execs(const std::string& folder) {
  BERTH_TRY(const Tail all, read_tail(folder, journal_bytes_max));
  std::map<std::string, Ended> execs;
  for (std::size_t at = all.text.find(first_line); at != std::string::npos;
       at = all.text.find(first_line, at + 1)) {
    BERTH_TRY(std::optional<Ended> record, record_at(all.text, at));
    if (record) execs.insert_or_assign(record->exec_id, *record);
  }
  return execs;
}

}  // namespace berth::keeper
