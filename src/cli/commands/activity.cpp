#include "cli/commands/common.hpp"
#include "cli/print/plain_words.hpp"

#include <ostream>

namespace berth::cli {
namespace {

const std::vector<Column>& activity_columns() {
  static const std::vector<Column> list = {{"WHEN", "createdAt", Shown::moment},
                                           {"WHO", "actorId"},
                                           {"ACTION", "action"},
                                           {"OBJECT", "entityType"},
                                           {"ID", "entityId"}};
  return list;
}

void put_in_plain_words(bj::array& rows) {
  for (bj::value& row : rows) {
    bj::object& fields = row.as_object();
    fields["action"] = plain_action(text_of(row, "action"));
    fields["entityType"] = plain_kind(text_of(row, "entityType"));
    fields["actorId"] = plain_actor(text_of(row, "actorId"));
  }
}

// One line an event, as it happens: programs get JSON lines, people the moment and the deed.
void print_activity(Context& context, const Event& event) {
  const Result<bj::value> row = parse_json(event.data);
  if (!row) return;
  std::ostream& out = context.console().out;
  if (context.printer().look() == Look::json) {
    out << event.data << "\n" << std::flush;
    return;
  }
  out << printable(text_of(*row, "createdAt")) << "  "
      << printable(plain_action(text_of(*row, "action"))) << "  "
      << printable(text_of(*row, "entityId")) << "  by "
      << printable(plain_actor(text_of(*row, "actorId"))) << "\n"
      << std::flush;
}

Result<> list_activity(Context& context, bool follow) {
  BERTH_TRY(const std::string path, context.company_path("activity"));
  if (!follow) {
    BERTH_TRY(bj::array rows, context.list(path));
    if (!context.printer().is_json()) put_in_plain_words(rows);
    context.printer().list(rows, activity_columns());
    return {};
  }
  BERTH_TRY(const Client* server, context.client());
  context.printer().note("waiting for what happens; Ctrl-C ends");
  return server->follow(path + "/stream", [&context](const Event& event) {
    print_activity(context, event);
    return context.console().out.good();
  });
}

}  // namespace

void add_activity_commands(CommandTree& tree) {
  CLI::App& group = tree.group("activity", "activity: who did what");
  const auto follow = std::make_shared<bool>(false);
  CLI::App& app =
      tree.leaf(group, "list", "list what happened, newest first", "berth activity list --follow",
                [follow](Context& context) { return list_activity(context, *follow); });
  app.add_flag("-f,--follow", *follow, "go on as it happens");
}

}  // namespace berth::cli
