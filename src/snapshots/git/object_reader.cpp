#include "snapshots/git/object_reader.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "snapshots/beneath.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace berth::snapshots {
namespace {

constexpr std::chrono::minutes reading_time{60};
constexpr std::size_t record_bytes_max = 16 << 10;

std::optional<GitMode> mode_of(std::string_view octal) {
  unsigned value = 0;
  std::from_chars(octal.data(), octal.data() + octal.size(), value, 8);
  switch (static_cast<GitMode>(value)) {
    case GitMode::file:
    case GitMode::program:
    case GitMode::link:
    case GitMode::commit:
    case GitMode::tree: return static_cast<GitMode>(value);
  }
  return std::nullopt;
}

// "100644 blob <id>\t<path>"
Result<TreeEntry> entry_of(std::string_view record) {
  const std::size_t tab = record.find('\t');
  const std::size_t id_at = tab == std::string_view::npos || tab < 40 ? 0 : tab - 40;
  const auto mode = mode_of(record.substr(0, record.find(' ')));
  const auto id = ObjectId::from_hex(record.substr(id_at, 40));
  if (tab == std::string_view::npos || !id) {
    return fail(Errc::git_failed, "git ls-tree: wrote " + in_quotes(record));
  }
  if (!mode) return refuse(record.substr(tab + 1), "has a mode that git does not write");
  return TreeEntry{.path = std::string{record.substr(tab + 1)}, .mode = *mode, .id = *id};
}

// Cuts what `git cat-file --batch` writes into blobs: "<id> blob <bytes>\n<content>\n".
class BatchReader {
 public:
  BatchReader(const std::vector<ObjectId>& blobs, BlobSink& sink) : blobs_(blobs), sink_(sink) {}

  Result<> take(std::string_view bytes) {
    while (!bytes.empty()) {
      if (state_ == State::content) {
        const std::string_view piece =
            bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
        BERTH_DO(sink_.write(piece));
        left_ -= piece.size();
        bytes.remove_prefix(piece.size());
        if (left_ == 0) state_ = State::line_end;
      } else if (state_ == State::line_end) {
        bytes.remove_prefix(1);
        BERTH_DO(sink_.end());
        ++done_;
        state_ = State::header;
      } else {
        const std::size_t end = bytes.find('\n');
        header_ += bytes.substr(0, end);
        if (header_.size() > record_bytes_max) return malformed();
        bytes.remove_prefix(
            std::min(end == std::string_view::npos ? bytes.size() : end + 1, bytes.size()));
        if (end != std::string_view::npos) BERTH_DO(begin());
      }
    }
    return {};
  }

  Result<> finish() const {
    if (done_ == blobs_.size()) return {};
    return fail(Errc::workspace_corrupt, "git cat-file: ended after " + std::to_string(done_) +
                                             " of " + std::to_string(blobs_.size()) + " objects");
  }

 private:
  enum class State { header, content, line_end };

  std::unexpected<Error> malformed() const {
    return fail(Errc::workspace_corrupt, "git cat-file: wrote " + in_quotes(header_),
                "restore the workspace from a backup");
  }

  Result<> begin() {
    const std::string header = std::exchange(header_, {});
    const std::string expected =
        done_ < blobs_.size() ? blobs_[done_].hex() + " blob " : std::string{"?"};
    if (!header.starts_with(expected)) {
      header_ = header;
      return malformed();
    }
    left_ = 0;
    std::from_chars(header.data() + expected.size(), header.data() + header.size(), left_);
    state_ = left_ == 0 ? State::line_end : State::content;
    return sink_.begin(done_, left_);
  }

  const std::vector<ObjectId>& blobs_;
  BlobSink& sink_;
  State state_ = State::header;
  std::string header_;
  std::uint64_t left_ = 0;
  std::size_t done_ = 0;
};

class TextSink : public BlobSink {
 public:
  explicit TextSink(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  Result<> begin(std::size_t, std::uint64_t bytes) override {
    if (bytes <= bytes_max_) return {};
    return fail(Errc::workspace_too_large,
                "a file has more than " + std::to_string(bytes_max_) + " bytes");
  }
  Result<> write(std::string_view piece) override {
    text += piece;
    return {};
  }
  Result<> end() override { return {}; }

  std::string text;

 private:
  std::uint64_t bytes_max_;
};

}  // namespace

Result<std::vector<TreeEntry>> list_tree(const Repository& repository, const ObjectId& tree,
                                         std::uint64_t entries_max) {
  BERTH_TRY(const ObjectId found, repository.tree_of(tree));
  std::vector<TreeEntry> entries;
  std::string rest;
  const ByteSink take = [&](std::string_view piece) -> Result<> {
    rest += piece;
    std::size_t at = 0;
    for (std::size_t end = rest.find('\0'); end != std::string::npos; end = rest.find('\0', at)) {
      BERTH_TRY(TreeEntry entry, entry_of(std::string_view{rest}.substr(at, end - at)));
      entries.push_back(std::move(entry));
      at = end + 1;
      if (entries.size() > entries_max) {
        return fail(Errc::workspace_too_large, "snapshot " + tree.hex() + ": has more than " +
                                                   std::to_string(entries_max) + " files");
      }
    }
    rest.erase(0, at);
    if (rest.size() > (64 << 10)) return refuse(rest.substr(0, 200), "is too long");
    return {};
  };
  BERTH_DO(repository.run({.arguments = {"ls-tree", "-r", "-z", "--full-tree", found.hex()},
                           .output = take,
                           .limits = {.time_max = reading_time}}));
  return entries;
}

Result<> read_blobs(const Repository& repository, const std::vector<ObjectId>& blobs,
                    BlobSink& sink) {
  if (blobs.empty()) return {};
  BatchReader reader{blobs, sink};
  std::string lines;
  std::size_t next = 0;
  const ByteSource ask = [&]() -> Result<std::string_view> {
    lines.clear();
    for (; next < blobs.size() && lines.size() < (32 << 10); ++next) {
      lines += blobs[next].hex();
      lines += '\n';
    }
    return lines;
  };
  BERTH_DO(repository.run(
      {.arguments = {"cat-file", "--batch", "--buffer"},
       .input = ask,
       .output = [&](std::string_view piece) { return reader.take(piece); },
       .limits = {.time_max = reading_time, .output_bytes_max = std::uint64_t{1} << 50}}));
  return reader.finish();
}

Result<std::string> read_blob(const Repository& repository, const ObjectId& blob,
                              std::uint64_t bytes_max) {
  TextSink sink{bytes_max};
  const std::vector<ObjectId> one{blob};
  BERTH_DO(read_blobs(repository, one, sink));
  return std::move(sink.text);
}

}  // namespace berth::snapshots
