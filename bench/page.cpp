// page SMALL_URL LARGE_URL ROWS: the time of one page of 50 environments, from a database with 100
// rows and from one with ROWS, measured alternately. Fills the databases first. Prints both medians
// in microseconds.

#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/sql/database.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace berth;

namespace {

constexpr int rows_small = 100;
constexpr int rows_per_transaction = 1000;
constexpr std::int64_t page_rows = 50;
constexpr int rounds = 1000;
constexpr int warm_up_rounds = 50;
constexpr Time start{1'700'000'000'000};

template <class T>
T need(Result<T> result) {
  if (result) {
    if constexpr (std::is_void_v<T>) {
      return;
    } else {
      return *std::move(result);
    }
  }
  std::fprintf(stderr, "page: %s\n", result.error().message.c_str());
  std::exit(1);
}

core::Environment environment(Random& random, const core::CompanyId& company, int number) {
  const Time at = start + number;
  return core::Environment{.id = core::EnvironmentId::make(random, at),
                           .company_id = company,
                           .name = "host " + std::to_string(number),
                           .description = "a machine in the rack",
                           .driver = core::DriverKind::ssh,
                           .config = {{"host", "10.0.0.1"},
                                      {"port", 22},
                                      {"username", "work"},
                                      {"remoteWorkspacePath", "/srv/work"}},
                           .env_vars = {},
                           .metadata = {},
                           .created_at = at,
                           .updated_at = at};
}

// One company with this many environments, in its own database.
class Shelf {
 public:
  Shelf(const std::string& url, int rows)
      : database_(need(store::open_database({.url = url, .readers = 1}))),
        company_(core::CompanyId::make(random_, start)) {
    const core::Company company{.id = company_,
                                .name = "bench",
                                .description = {},
                                .default_environment_id = {},
                                .created_at = start,
                                .updated_at = start};
    need(store::write_now(*database_, [&](store::Session& session) {
      return store::insert_company(session, company);
    }));
    for (int from = 0; from < rows; from += rows_per_transaction) {
      fill(from, std::min(rows, from + rows_per_transaction));
    }
  }

  double page_us() {
    std::size_t got = 0;
    const auto begin = std::chrono::steady_clock::now();
    need(store::read_now(*database_, [&](store::Session& session) -> Result<> {
      BERTH_TRY(const auto page,
                store::list_environments(session, company_, {}, {.limit = page_rows, .after = {}}));
      got = page.rows.size();
      return {};
    }));
    const auto took = std::chrono::steady_clock::now() - begin;
    if (got != page_rows) std::exit(1);
    return std::chrono::duration<double, std::micro>(took).count();
  }

 private:
  void fill(int from, int to) {
    need(store::write_now(*database_, [&](store::Session& session) -> Result<> {
      for (int number = from; number < to; ++number) {
        BERTH_DO(store::insert_environment(session, environment(random_, company_, number)));
      }
      return {};
    }));
  }

  SystemRandom random_;
  std::unique_ptr<store::Database> database_;
  core::CompanyId company_;
};

double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: page SMALL_URL LARGE_URL ROWS\n", stderr);
    return 2;
  }
  Shelf small{argv[1], rows_small};
  Shelf large{argv[2], std::clamp(std::atoi(argv[3]), rows_small, 1'000'000)};
  std::vector<double> small_us;
  std::vector<double> large_us;
  for (int i = -warm_up_rounds; i < rounds; ++i) {
    const double a = small.page_us();
    const double b = large.page_us();
    if (i < 0) continue;
    small_us.push_back(a);
    large_us.push_back(b);
  }
  std::printf("%.1f %.1f\n", median(small_us), median(large_us));
}
