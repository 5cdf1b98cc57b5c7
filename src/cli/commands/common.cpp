#include "cli/commands/common.hpp"

#include "base/files.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t json_file_bytes_max = 1 << 20;

std::string group_name(const Kind& kind) {
  return kind.noun == "environment" ? "env" : kind.noun;
}

}  // namespace

void add_list(CommandTree& tree, CLI::App& group, const Kind& kind) {
  const std::string example = "berth " + group_name(kind) + " list";
  tree.leaf(group, "list", "list them, newest first", example,
            [&kind](Context& context) -> Result<> {
              std::string path = "/api/companies";
              if (&kind != &company_kind()) {
                BERTH_TRY(path, context.company_path(kind.path));
              }
              BERTH_TRY(bj::array rows, context.list(path));
              if (!context.printer().is_json()) context.add_names(rows);
              context.printer().list(rows, kind.columns);
              return {};
            });
}

void add_get(CommandTree& tree, CLI::App& group, const Kind& kind, const std::string& example) {
  const auto named = std::make_shared<std::string>();
  CLI::App& app =
      tree.leaf(group, "get", "show one", example, [&kind, named](Context& context) -> Result<> {
        BERTH_TRY(const bj::value object, context.find_page(kind, *named));
        context.printer().object(object);
        return {};
      });
  app.add_option(kind.noun, *named, "its name, or its id or an end of it")->required();
}

void add_delete(CommandTree& tree, CLI::App& group, const Kind& kind, const std::string& example) {
  const auto named = std::make_shared<std::string>();
  CLI::App& app = tree.leaf(
      group, "delete", "delete one", example, [&kind, named](Context& context) -> Result<> {
        BERTH_TRY(const bj::value object, context.find(kind, *named));
        const std::string name = kind.noun + " '" + text_of(object, "name") + "'";
        BERTH_DO(confirm(context.console(), "Delete the " + name + "?", context.flags().yes));
        const std::string path = "/api/" + kind.path + "/" + text_of(object, "id");
        BERTH_TRY(const bj::value gone, context.send({.method = "DELETE", .path = path}));
        if (context.printer().look() == Look::json) context.printer().object(gone);
        context.printer().note("deleted the " + name);
        return {};
      });
  app.add_option(kind.noun, *named, "its name, or its id or an end of it")->required();
}

CLI::Option* add_environment_flag(CLI::App& app, std::string& target, const std::string& says) {
  return app.add_option("-e,--environment", target, says)->type_name("ENVIRONMENT");
}

void add_workdir_flag(CLI::App& app, std::string& target, const std::string& says) {
  app.add_option("-w,--workdir", target, says)->type_name("DIR");
  add_old_name(app, "-C,--cwd", target);
}

Result<bj::object> read_object(const std::string& text, const std::string& flag) {
  std::string json = text;
  if (text.starts_with('@')) {
    BERTH_TRY(json, text == "@-" ? read_fd(0, json_file_bytes_max, "standard input")
                                 : read_file(text.substr(1), json_file_bytes_max));
  }
  const Result<bj::value> value = parse_json(json);
  if (!value) {
    return fail(Errc::bad_request, flag + ": " + value.error().message,
                "give a JSON object, or @FILE that holds one");
  }
  if (!value->is_object()) {
    return fail(Errc::bad_request, flag + ": is not a JSON object",
                "give a JSON object, or @FILE that holds one");
  }
  return value->get_object();
}

Result<> lay_over(bj::object& object, const std::vector<std::string>& pairs,
                  const std::string& flag) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return fail(Errc::bad_request, flag + " '" + pair + "': has no '='",
                  "write it as " + flag + " key=value");
    }
    bj::object* at = &object;
    std::string_view path{pair.data(), equals};
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
      bj::value& inner = (*at)[path.substr(0, dot)];
      if (inner.is_null()) inner.emplace_object();
      if (!inner.is_object()) {
        return fail(Errc::bad_request, flag + " '" + pair + "': '" +
                                           std::string{path.substr(0, dot)} + "' is not an object");
      }
      at = &inner.get_object();
      path.remove_prefix(dot + 1);
    }
    const std::string text = pair.substr(equals + 1);
    Result<bj::value> value = parse_json(text);
    (*at)[path] = value ? *std::move(value) : bj::value(bj::string(text));
  }
  return {};
}

void set_text(bj::object& body, const char* key, const std::string& text) {
  if (!text.empty()) body[key] = text;
}

void set_nullable(bj::object& body, const char* key, const std::optional<std::string>& text) {
  if (!text) return;
  body[key] = text->empty() ? bj::value(nullptr) : bj::value(bj::string(*text));
}

}  // namespace berth::cli
