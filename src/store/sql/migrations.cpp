#include "store/sql/migrations.hpp"

#include "store/sql/mapping.hpp"

#include <algorithm>
#include <array>

// The .sql files remain plain SQL. #embed is C23, which Clang also supports in C++.
#pragma clang diagnostic ignored "-Wc23-extensions"

namespace berth::store {
namespace {

constexpr char foundation[] = {
#embed "migrations/0001_foundation.sql"
};

constexpr char runs[] = {
#embed "migrations/0002_runs.sql"
};

constexpr char plugins_sql[] = {
#embed "migrations/0003_plugins.sql"
};

constexpr char setup_sessions[] = {
#embed "migrations/0004_setup_sessions.sql"
};

constexpr char template_source[] = {
#embed "migrations/0005_template_source.sql"
};

constexpr char fewer_indexes[] = {
#embed "migrations/0006_fewer_indexes.sql"
};

constexpr char node_url[] = {
#embed "migrations/0007_node_url.sql"
};

constexpr char allowances[] = {
#embed "migrations/0008_allowances.sql"
};

constexpr char plugin_box[] = {
#embed "migrations/0009_plugin_box.sql"
};

constexpr char retention[] = {
#embed "migrations/0010_retention.sql"
};

constexpr char private_ssh[] = {
#embed "migrations/0011_private_ssh.sql"
};

constexpr char sandbox_shares[] = {
#embed "migrations/0012_sandbox_shares.sql"
};

constexpr char agent_homes[] = {
#embed "migrations/0013_agent_homes.sql"
};

constexpr char one_row_per_sandbox[] = {
#embed "migrations/0014_one_row_per_sandbox.sql"
};

constexpr char run_people[] = {
#embed "migrations/0015_run_people.sql"
};

template <std::size_t N>
constexpr std::string_view text_of(const char (&bytes)[N]) {
  return {bytes, N};
}

constexpr std::array known_migrations{
    Migration{1, "foundation", text_of(foundation)},
    Migration{2, "runs", text_of(runs)},
    Migration{3, "plugins", text_of(plugins_sql)},
    Migration{4, "setup_sessions", text_of(setup_sessions)},
    Migration{5, "template_source", text_of(template_source)},
    Migration{6, "fewer_indexes", text_of(fewer_indexes)},
    Migration{7, "node_url", text_of(node_url)},
    Migration{8, "allowances", text_of(allowances)},
    Migration{9, "plugin_box", text_of(plugin_box)},
    Migration{10, "retention", text_of(retention)},
    Migration{11, "private_ssh", text_of(private_ssh)},
    Migration{12, "sandbox_shares", text_of(sandbox_shares)},
    Migration{13, "agent_homes", text_of(agent_homes)},
    Migration{14, "one_row_per_sandbox", text_of(one_row_per_sandbox)},
    Migration{15, "run_people", text_of(run_people)},
};

constexpr std::string_view record_table = R"sql(
  create table if not exists schema_migrations (
    number bigint not null primary key,
    name text not null,
    applied_at bigint not null
  )
)sql";

bool is_blank(std::string_view sql) {
  while (!sql.empty()) {
    const std::string_view line = sql.substr(0, sql.find('\n'));
    const std::size_t start = line.find_first_not_of(" \t");
    if (start != std::string_view::npos && !line.substr(start).starts_with("--")) return false;
    sql.remove_prefix(std::min(line.size() + 1, sql.size()));
  }
  return true;
}

std::vector<std::string_view> statements_of(std::string_view sql) {
  std::vector<std::string_view> list;
  while (!is_blank(sql)) {
    const std::size_t end = sql.find(";\n");
    list.push_back(sql.substr(0, end));
    sql.remove_prefix(end == std::string_view::npos ? sql.size() : end + 2);
  }
  return list;
}

// By default PostgreSQL compares text by language rules. Compared by bytes, both engines order ids
// alike, and a C library upgrade cannot break an index.
std::string collated(std::string sql) {
  constexpr std::string_view type = " text";
  constexpr std::string_view collation = " collate \"C\"";
  for (std::size_t at = sql.find(type); at != std::string::npos; at = sql.find(type, at)) {
    at += type.size();
    const bool whole_word = at == sql.size() || std::string_view{" ,\n"}.contains(sql[at]);
    if (whole_word) sql.insert(at, collation);
  }
  return sql;
}

// SQLite auto-increments a primary key only with this type.
std::string counted(std::string sql) {
  constexpr std::string_view type = " bigserial ";
  const std::size_t at = sql.find(type);
  if (at != std::string::npos) sql.replace(at, type.size(), " integer ");
  return sql;
}

std::string spelled_for(EngineKind engine, std::string_view statement) {
  std::string sql{statement};
  return engine == EngineKind::sqlite ? counted(std::move(sql)) : collated(std::move(sql));
}

}  // namespace

std::span<const Migration> migrations() {
  return known_migrations;
}

Result<bool> migrate_one(Session& session, EngineKind engine, std::span<const Migration> known,
                         Time now, const std::string& database) {
  BERTH_DO(session.run(record_table, {}));
  BERTH_TRY(const Rows found,
            session.run("select coalesce(max(number), 0) from schema_migrations", {}));
  BERTH_TRY(const std::int64_t newest,
            mapping_detail::to_integer(found.rows.at(0).at(0), "schema_migrations", "number"));
  const std::int64_t last = known.empty() ? 0 : known.back().number;
  if (newest > last) {
    return fail(Errc::store_newer,
                database + ": has schema " + std::to_string(newest) +
                    ", and this program knows only " + std::to_string(last),
                "run the version of berth that made it, or a newer one");
  }
  // Numbers ascend, with possible gaps.
  const auto next = std::ranges::upper_bound(known, newest, {}, &Migration::number);
  if (next == known.end()) return false;
  for (const std::string_view statement : statements_of(next->sql)) {
    BERTH_DO(session.run(spelled_for(engine, statement), {}));
  }
  BERTH_DO(query(session,
                 "insert into schema_migrations (number, name, applied_at) values ($1, $2, $3)",
                 next->number, next->name, now));
  return true;
}

}  // namespace berth::store
