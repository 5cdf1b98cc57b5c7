#include "images/template_store.hpp"

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/id.hpp"
#include "base/text.hpp"
#include "files/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace berth::images {
namespace {

constexpr std::size_t template_record_bytes_max = 64 << 10;
constexpr std::size_t template_name_bytes_max = 128;

std::unexpected<Error> template_not_found_error(std::string_view named) {
  return fail(Errc::template_not_found, "there is no template " + in_quotes(named),
              "'berth template list' shows the templates; 'berth env update ENV' takes another");
}

std::string holder_of(const Template& made) {
  return std::string{template_holder_prefix} + made.id;
}

Result<> check_name(std::string_view name) {
  if (!name.empty() && name.size() <= template_name_bytes_max && !is_uuid(name) &&
      as_utf8(name) == name) {
    return {};
  }
  return fail(Errc::validation_failed, in_quotes(name) + " is not the name of a template",
              "use a text of at most 128 bytes that is not a UUID");
}

}  // namespace

Result<TemplateStore> TemplateStore::open(const std::string& folder, const ImageStore& images) {
  BERTH_TRY(StoreFolder things, StoreFolder::open(folder, "by-id"));
  return TemplateStore{std::move(things), images};
}

// Describes the new template, or fails if it may not be made.
Result<Template> TemplateStore::described(const CaptureRequest& request) const {
  BERTH_DO(check_name(request.name));
  if (request.id && !is_uuid(*request.id)) {
    return fail(Errc::validation_failed, in_quotes(*request.id) + " is not a template id");
  }
  BERTH_TRY(const Image base, images_.find(request.base_image));
  SystemRandom random;
  const Time now = SystemClock{}.now();
  Template made{.id = request.id.value_or(make_uuid(random, now)),
                .name = request.name,
                .base_image = base.digest,
                .parent = request.parent,
                .created_at = now};
  if (find(made.name)) {
    return fail(Errc::conflict, "there is a template " + in_quotes(made.name) + " already",
                "choose another name, or remove that one");
  }
  if (!made.parent) return made;
  BERTH_TRY(const Template parent, find(*made.parent));
  if (parent.base_image != made.base_image) {
    return fail(Errc::conflict, "template " + in_quotes(parent.name) + " stands on " +
                                    parent.base_image + ", not on " + made.base_image);
  }
  made.parent = parent.id;
  made.depth = parent.depth + 1;
  if (made.depth > template_depth_max) {
    return fail(Errc::conflict,
                "template " + in_quotes(parent.name) + " is already " +
                    std::to_string(parent.depth) + " layers high, and more are not stacked",
                "start from a template with fewer layers below it");
  }
  return made;
}

Result<Template> TemplateStore::capture(int upper, const CaptureRequest& request,
                                        const ProgressSink& progress) const {
  if (request.id && is_uuid(*request.id) && folder_.contains(*request.id)) return read(*request.id);
  BERTH_TRY(Template made, described(request));
  BERTH_DO(folder_.sweep());
  BERTH_TRY(Draft draft, folder_.make_draft());
  const int folder = draft.folder.get();
  if (::mkdirat(folder, "upper", 0700) != 0)
    return files::store_failure("make folder", "upper", errno);
  Fd root{files::open_beneath(folder, "upper", O_RDONLY | O_DIRECTORY, files::Links::none)};
  if (!root) return files::store_failure("open", "upper", errno);

  Meter meter{progress};
  meter.begin(Phase::copying);
  const files::Rules rules = files::Rules::layer;
  files::TreeWriter into{std::move(root), {.rules = rules, .limits = request.limits}, meter};
  const files::CopyOptions how{.rules = rules, .ids = request.ids, .marks = request.marks};
  BERTH_DO(files::copy_tree(upper, into, how, meter));
  BERTH_DO(into.finish());
  made.bytes = into.tally().bytes;
  made.entries = into.tally().entries;

  meter.begin(Phase::saving);
  const Fd file{::openat(folder, "template.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!file) return files::store_failure("make file", "template.json", errno);
  BERTH_DO(files::write_at(file.get(), encode_text(made) + "\n", 0, "template.json"));
  BERTH_DO(folder_.make_durable(draft));
  BERTH_DO(publish(std::move(draft), made));
  return made;
}

// What it is based on is held before it exists. A crash in between leaves a hold without a
// template: that keeps too much, never too little, and `gc` finds it.
Result<> TemplateStore::publish(Draft draft, const Template& made) const {
  BERTH_TRY(const Fd held, folder_.lock());
  if (find(made.name)) return fail(Errc::conflict, in_quotes(made.name) + " was taken meanwhile");
  BERTH_DO(images_.hold(made.base_image, holder_of(made)));
  if (made.parent) {
    if (!folder_.contains(*made.parent)) return template_not_found_error(*made.parent);
    BERTH_DO(folder_.hold(*made.parent, holder_of(made)));
  }
  return folder_.publish(std::move(draft), made.id);
}

Result<Template> TemplateStore::read(const std::string& id) const {
  const auto text = read_file(folder_.place_of(id) + "/template.json", template_record_bytes_max);
  if (!text) return template_not_found_error(id);
  return decode_text<Template>(*text, UnknownKeys::ignore);
}

Result<Template> TemplateStore::find(std::string_view named) const {
  if (is_uuid(named)) return read(std::string{named});
  BERTH_TRY(const std::vector<Template> all, list());
  const auto found = std::ranges::find(all, named, &Template::name);
  if (found == all.end()) return template_not_found_error(named);
  return *found;
}

Result<std::vector<Template>> TemplateStore::list() const {
  BERTH_TRY(const std::vector<std::string> ids, folder_.names());
  std::vector<Template> all;
  for (const std::string& id : ids) {
    if (Result<Template> each = read(id)) all.push_back(*std::move(each));
  }
  return all;
}

Result<> TemplateStore::remove(std::string_view named) const {
  Draft going;  // deleted after the lock is released
  BERTH_TRY(const Fd held, folder_.lock());
  BERTH_TRY(const Template gone, find(named));
  const std::vector<std::string> holders = folder_.holders(gone.id);
  if (!holders.empty()) {
    Error error{.code = Errc::image_in_use,
                .message = "template " + in_quotes(gone.name) + " is in use by " +
                           describe_holder(holders.front()),
                .remedy = in_use_remedy};
    error.facts["holders"] = holders;
    return std::unexpected(std::move(error));
  }
  BERTH_TRY(going, folder_.retire(gone.id));
  if (gone.parent) BERTH_DO(folder_.release(*gone.parent, holder_of(gone)));
  return images_.release(gone.base_image, holder_of(gone));
}

Result<std::uint64_t> TemplateStore::gc() const {
  BERTH_TRY(const std::uint64_t drafts, folder_.sweep());
  // Holds are added and removed under this lock together with their templates.
  BERTH_TRY(const Fd held, folder_.lock());
  const auto is_stale = [this](std::string_view holder) {
    return holder.starts_with(template_holder_prefix) &&
           !folder_.contains(holder.substr(template_holder_prefix.size()));
  };
  BERTH_TRY(const std::vector<Image> all, images_.list());
  for (const Image& image : all) {
    for (const std::string& holder : image.holders) {
      if (is_stale(holder)) BERTH_DO(images_.release(image.digest, holder));
    }
  }
  BERTH_TRY(const std::vector<std::string> ids, folder_.names());
  for (const std::string& id : ids) {
    for (const std::string& holder : folder_.holders(id)) {
      if (is_stale(holder)) BERTH_DO(folder_.release(id, holder));
    }
  }
  return drafts;
}

Result<> TemplateStore::hold(const std::string& id, const std::string& holder) const {
  BERTH_TRY(const Fd held, folder_.lock());
  if (!is_uuid(id) || !folder_.contains(id)) return template_not_found_error(id);
  return folder_.hold(id, holder);
}

Result<> TemplateStore::release(const std::string& id, const std::string& holder) const {
  if (!is_uuid(id)) return template_not_found_error(id);
  return folder_.release(id, holder);
}

Result<Fd> TemplateStore::pin(const std::string& id) const {
  BERTH_TRY(const Fd held, folder_.lock());
  if (!is_uuid(id) || !folder_.contains(id)) return template_not_found_error(id);
  return folder_.pin(id);
}

Result<std::vector<std::string>> TemplateStore::layers_of(const Template& top) const {
  std::vector<std::string> layers{folder_.place_of(top.id) + "/upper"};
  std::optional<std::string> next = top.parent;
  while (next) {
    if (layers.size() >= template_depth_max) {
      return fail(Errc::conflict, "template " + in_quotes(top.name) + " has too many layers");
    }
    BERTH_TRY(const Template below, read(*next));
    layers.push_back(folder_.place_of(below.id) + "/upper");
    next = below.parent;
  }
  return layers;
}

}  // namespace berth::images
