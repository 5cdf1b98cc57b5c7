#include "base/files.hpp"
#include "cli/commands/common.hpp"
#include "cli/debian_tree.hpp"
#include "cli/run/verdict.hpp"
#include "images/image_store.hpp"
#include "images/template_store.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <ostream>

namespace berth::cli {
namespace {

using images::Image;
using images::ImageStore;

struct ImageOptions {
  std::string named;
  std::string source;
  std::optional<std::string> digest;
  std::optional<std::string> reference;
  DebianTree debian;
  bool verify = false;
  bool force = false;
};

std::string image_folder(Context& context) {
  return context.config().settings.home + "/images";
}

// The store is a folder with its own lock, so no server is needed and one may run.
Result<ImageStore> open_store(Context& context) {
  context.adopt_server_home();
  BERTH_DO(make_directories(context.config().settings.home, 0700));
  return ImageStore::open(image_folder(context));
}

// One terminal line that is overwritten repeatedly and removed in the end.
class ProgressLine {
 public:
  explicit ProgressLine(Context& context)
      : console_(context.console()),
        shown_(console_.err_is_terminal && !context.flags().quiet && !context.flags().json) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_) console_.err << "\r\033[K" << std::flush;
  }

  images::ProgressSink sink() {
    return [this](const images::Progress& now) {
      if (!shown_) return;
      console_.err << "\r\033[K" << name_of(now.phase) << ": " << now.entries << " entries, "
                   << bytes_in_units(now.bytes) << std::flush;
    };
  }

 private:
  Console& console_;
  bool shown_;
};

// Makes SIGINT and SIGTERM readable while this lives, so that an import ends in order and removes
// its draft. A signal that was ignored remains ignored.
class Interruption {
 public:
  Interruption() {
    sigset_t awaited;
    ::sigemptyset(&awaited);
    for (const int number : {SIGINT, SIGTERM}) {
      struct sigaction now{};
      ::sigaction(number, nullptr, &now);
      if (now.sa_handler != SIG_IGN) ::sigaddset(&awaited, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &awaited, &before_);
    signals_ = Fd{::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK)};
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption() {
    while (taken()) {  // a signal that came too late is dropped
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // For polling; -1 if there is none.
  int fd() const { return signals_.get(); }
  // The signal that has arrived, once.
  std::optional<int> taken() const {
    signalfd_siginfo got{};
    if (::read(signals_.get(), &got, sizeof got) != sizeof got) return std::nullopt;
    return static_cast<int>(got.ssi_signo);
  }

 private:
  sigset_t before_{};
  Fd signals_;
};

void print_imported(Context& context, const Image& image) {
  if (context.printer().look() == Look::json) context.printer().object(encode(image));
  std::string text = "imported " + image.digest + " into " + image_folder(context) + ": " +
                     std::to_string(image.entries) + " entries, " + bytes_in_units(image.bytes);
  if (image.set_id_bits_removed > 0) {
    text += "; set-id bits taken from " + std::to_string(image.set_id_bits_removed) + " files";
  }
  if (image.devices_skipped > 0) {
    text += "; " + std::to_string(image.devices_skipped) + " devices left out";
  }
  context.printer().note(text);
}

Result<> import(Context& context, const ImageOptions& options) {
  BERTH_TRY(const ImageStore store, open_store(context));
  images::ImportOptions wanted{.expected_digest = options.digest};
  wanted.wanted.reference = options.reference;
  const Interruption interruption;
  wanted.stop = interruption.fd();
  Result<Image> image = fail(Errc::bug, "");
  {
    ProgressLine line{context};
    image = store.import(options.source, options.named, wanted, line.sink());
  }
  if (!image && image.error().code == Errc::cancelled) {
    context.end_with(exit_signal_base + interruption.taken().value_or(SIGINT));
  }
  if (!image) return std::unexpected(std::move(image).error());
  print_imported(context, *image);
  return {};
}

Result<> build_debian(Context& context, const ImageOptions& options) {
  BERTH_TRY(const ImageStore store, open_store(context));
  BERTH_DO(images::parse_image_name(options.named));
  BERTH_TRY(const Fd tar,
            make_debian_tree(options.debian, image_folder(context), context.console()));
  ImageOptions as_import = options;
  as_import.source = "/proc/self/fd/" + std::to_string(tar.get());
  return import(context, as_import);
}

// An image as a table row: short enough for a line, long enough to identify it.
bj::value row_of(const Image& image) {
  bj::value row = encode(image);
  row.as_object()["size"] =
      image.kind == images::ImageKind::host ? "-" : bytes_in_units(image.bytes);
  row.as_object()["short"] = image.digest.substr(0, 19);
  return row;
}

Result<> list_images(Context& context, const ImageOptions& /*options*/) {
  BERTH_TRY(const ImageStore store, open_store(context));
  BERTH_TRY(const std::vector<Image> all, store.list());
  const bool json = context.printer().look() == Look::json;
  bj::array rows;
  for (const Image& image : all) rows.push_back(json ? encode(image) : row_of(image));
  context.printer().list(rows, {{"NAMES", "names", Shown::words},
                                {"DIGEST", "short"},
                                {"FROM", "kind"},
                                {"SIZE", "size"},
                                {"HELD BY", "holders", Shown::words},
                                {"CREATED", "createdAt", Shown::moment}});
  return {};
}

Result<> inspect_image(Context& context, const ImageOptions& options) {
  BERTH_TRY(const ImageStore store, open_store(context));
  BERTH_TRY(const Image image, store.find(options.named));
  if (options.verify) {
    ProgressLine line{context};
    BERTH_DO(store.verify(image, line.sink()));
  }
  bj::value shown = encode(image);
  shown.as_object()["root"] = store.root_of(image);
  context.printer().object(shown);
  if (options.verify) context.printer().note("its tree is what was imported");
  return {};
}

Result<> print_removed(Context& context, const images::Removed& removed) {
  if (context.printer().look() == Look::json) context.printer().object(encode(removed));
  context.printer().note("removed " + std::to_string(removed.digests.size()) + " images, " +
                         bytes_in_units(removed.bytes) + ", and " + std::to_string(removed.drafts) +
                         " drafts");
  return {};
}

Result<> remove_image(Context& context, const ImageOptions& options) {
  BERTH_TRY(const ImageStore store, open_store(context));
  BERTH_TRY(const Image image, store.find(options.named));
  BERTH_DO(
      confirm(context.console(), "Remove the image " + options.named + "?", context.flags().yes));
  const auto if_named = options.force ? images::IfNamed::remove : images::IfNamed::refuse;
  BERTH_TRY(const images::Removed removed, store.remove(options.named, if_named));
  return print_removed(context, removed);
}

Result<> gc(Context& context, const ImageOptions& /*options*/) {
  BERTH_TRY(const ImageStore store, open_store(context));
  // Deleted templates must not keep images.
  BERTH_TRY(const images::TemplateStore templates,
            images::TemplateStore::open(context.config().settings.home + "/templates", store));
  BERTH_TRY(const std::uint64_t drafts, templates.gc());
  BERTH_TRY(images::Removed removed, store.gc());
  removed.drafts += drafts;
  return print_removed(context, removed);
}

CLI::App& add(CommandTree& tree, CLI::App& group, const char* name, const char* says,
              const char* example, const std::shared_ptr<ImageOptions>& options,
              Result<> (*action)(Context&, const ImageOptions&)) {
  return tree.leaf(group, name, says, example,
                   [options, action](Context& context) { return action(context, *options); });
}

void add_import(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<ImageOptions>();
  CLI::App& app = add(tree, group, "import", "unpack one into the store",
                      "berth image import ./debian.tar.zst debian:bookworm", options, import);
  app.add_option("source", options->source,
                 "a directory, a tar in any compression, an OCI layout, or an archive of OCI or "
                 "docker; /dev/stdin for a tar from a pipe")
      ->required();
  app.add_option("name", options->named, "its name, with an optional :tag")->required();
  app.add_option("--digest", options->digest,
                 "refuse anything else: of the manifest, or of the tar as it is")
      ->type_name("sha256:HEX");
  app.add_option("--ref", options->reference, "which image, where the source holds several")
      ->type_name("NAME");
}

void add_build_debian(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<ImageOptions>();
  CLI::App& app = add(
      tree, group, "build-debian", "make one with mmdebstrap from the apt sources of this machine",
      "berth image build-debian debian:dev --include git,python3", options, build_debian);
  app.add_option("name", options->named, "its name, with an optional :tag")->required();
  app.add_option("--suite", options->debian.suite, "the release; this machine's own by default")
      ->type_name("SUITE");
  app.add_option("--include", options->debian.packages, "packages besides the essential ones")
      ->type_name("PACKAGE,...")
      ->delimiter(',');
}

}  // namespace

void add_image_commands(CommandTree& tree) {
  CLI::App& group = tree.group("image", "images: what sandboxes on this machine start from");
  add_import(tree, group);
  add_build_debian(tree, group);
  add(tree, group, "list", "list them, with the names they have", "berth image list",
      std::make_shared<ImageOptions>(), list_images);

  const auto inspected = std::make_shared<ImageOptions>();
  CLI::App& inspects =
      add(tree, group, "inspect", "show one with its configuration and its folder",
          "berth image inspect debian:bookworm --verify", inspected, inspect_image);
  inspects.add_option("image", inspected->named, "its name, its digest or the start of it")
      ->required();
  inspects.add_flag("--verify", inspected->verify, "compute the digest of its tree anew");

  const auto removed = std::make_shared<ImageOptions>();
  CLI::App& removes = add(tree, group, "rm", "take a name away, and the image with its last name",
                          "berth image rm debian:bookworm --yes", removed, remove_image);
  removes.add_option("image", removed->named, "its name, its digest or the start of it")
      ->required();
  removes.add_flag("--force", removed->force,
                   "although environments name it, whose runs then fail");
  add(tree, group, "gc", "remove images without a name or a use, and what broken imports left",
      "berth image gc", std::make_shared<ImageOptions>(), gc);
}

}  // namespace berth::cli
