// runs finish PORT COMPANY BODY COUNT: starts COUNT runs one after the other, and waits until each
// is in a final state. Prints the median time of one in microseconds, from the request to the
// response with that state. The end of its lease is awaited outside that time, so that no two runs
// overlap.
//
// runs echo PORT COMPANY BODY COUNT TEXT: starts COUNT runs one after the other, reads the log of
// each when it is over, which must be the text and a new line, and waits until its lease is
// released. Prints the median time of all that in microseconds.
//
// runs read PORT COMPANY BODY: starts a run and reads its raw log from the start while it works.
// Prints the bytes, the seconds from the request to the last byte, and those to the end of the run,
// before which the log is flushed to the disk.

#include "loopback_client.hpp"

#include <chrono>
#include <vector>

namespace {

using bench::Answer;
using bench::give_up;
using Clock = std::chrono::steady_clock;

struct Job {
  unsigned short port = 0;
  std::string path;
  std::string body;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The first string with that name; in a run, `id` and `status` are its own.
std::string_view text_of(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string{name} + "\":\"";
  const auto at = json.find(key);
  if (at == std::string_view::npos) return {};
  const auto begin = at + key.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

std::string start(bench::LoopbackClient& client, const Job& job) {
  const Answer answer = client.post(job.path, job.body);
  if (answer.status != 202) give_up("the run was not taken: " + std::string{answer.body});
  return "/api/heartbeat-runs/" + std::string{text_of(answer.body, "id")};
}

// Waits until the run is over, or, with `release`, its lease too. The server notifies, so that no
// polling disturbs its work.
void wait_until(bench::LoopbackClient& client, const std::string& run, const char* moment) {
  const Answer answer = client.get(run + "?wait=60&until=" + moment);
  if (answer.status != 200) give_up("the run is gone: " + std::string{answer.body});
  if (text_of(answer.body, "status") != "succeeded") {
    give_up("the run failed: " + std::string{answer.body});
  }
  if (std::string_view{moment} != "release") return;
  const auto lease = answer.body.find("\"environmentLease\":{");
  if (lease == std::string_view::npos) give_up("a run without its lease");
  if (text_of(answer.body.substr(lease), "status") != "released") {
    give_up("the lease is still held: " + std::string{answer.body});
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void echo(const Job& job, std::size_t count, std::string_view text) {
  bench::LoopbackClient client{job.port};
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    const std::string run = start(client, job);
    wait_until(client, run, "end");
    const Answer log = client.get(run + "/log?format=raw");
    if (log.status != 200 || log.body != std::string{text} + "\n") {
      give_up("the log is not what was said: " + std::string{log.body});
    }
    wait_until(client, run, "release");
    times.push_back(seconds_since(begun) * 1e6);
  }
  std::printf("%.1f\n", median(std::move(times)));
}

void finish(const Job& job, std::size_t count) {
  bench::LoopbackClient client{job.port};
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    const std::string run = start(client, job);
    wait_until(client, run, "end");
    times.push_back(seconds_since(begun) * 1e6);
    wait_until(client, run, "release");
  }
  std::printf("%.1f\n", median(std::move(times)));
}

void read(const Job& job) {
  constexpr auto page_bytes = "4194304";
  bench::LoopbackClient client{job.port};
  const auto begun = Clock::now();
  const std::string run = start(client, job);
  const std::string log = run + "/log?format=raw&limitBytes=" + page_bytes + "&offset=";
  std::size_t bytes = 0;
  double last_byte_s = 0;
  std::string offset = "0";
  while (true) {
    const Answer answer = client.get(log + offset);
    if (answer.status != 200) give_up("no log: " + std::string{answer.body});
    bytes += answer.body.size();
    if (!answer.body.empty()) last_byte_s = seconds_since(begun);
    offset = answer.field("X-Next-Offset");
    if (answer.field("X-Eof") == "true") break;
    // Nothing new: the reader has caught up with the command.
    if (answer.body.empty()) ::usleep(500);
  }
  std::printf("%zu %.6f %.6f\n", bytes, last_byte_s, seconds_since(begun));
  wait_until(client, run, "release");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (!(what == "finish" && argc == 6) && !(what == "echo" && argc == 7) &&
      !(what == "read" && argc == 5)) {
    give_up(
        "usage: runs finish PORT COMPANY BODY COUNT | runs echo PORT COMPANY BODY COUNT TEXT | "
        "runs read PORT COMPANY BODY");
  }
  const Job job{.port = static_cast<unsigned short>(std::strtoul(argv[2], nullptr, 10)),
                .path = "/api/companies/" + std::string{argv[3]} + "/runs",
                .body = argv[4]};
  const auto count = [&] { return std::max<std::size_t>(1, std::strtoul(argv[5], nullptr, 10)); };
  if (what == "finish") {
    finish(job, count());
  } else if (what == "echo") {
    echo(job, count(), argv[6]);
  } else {
    read(job);
  }
}
