// http_load PORT PATH BODY CONNECTIONS SECONDS: posts BODY to PATH over keep-alive connections,
// each waiting for its response before it sends again. '@' in BODY becomes a unique name. Prints
// the 201 responses per second, and the median time of a request in microseconds.

#include "loopback_client.hpp"

#include <chrono>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  unsigned short port = 0;
  std::string path;
  std::string body;
  Clock::time_point end;
};

std::string body_with(const Job& job, const std::string& name) {
  std::string body = job.body;
  if (const auto at = body.find('@'); at != std::string::npos) body.replace(at, 1, name);
  return body;
}

void work(const Job& job, unsigned worker, std::vector<double>& times) {
  bench::LoopbackClient client{job.port};
  for (unsigned i = 0; Clock::now() < job.end; ++i) {
    const std::string name =
        std::to_string(::getpid()) + "-" + std::to_string(worker) + "-" + std::to_string(i);
    const std::string body = body_with(job, name);
    const auto start = Clock::now();
    const bench::Answer answer = client.post(job.path, body);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    if (answer.status != 201) bench::give_up("not created: " + std::string{answer.body});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: http_load PORT PATH BODY CONNECTIONS SECONDS\n", stderr);
    return 2;
  }
  const auto connections = std::clamp<unsigned long>(std::strtoul(argv[4], nullptr, 10), 1, 256);
  const double seconds = std::clamp(std::strtod(argv[5], nullptr), 0.1, 60.0);
  const auto start = Clock::now();
  const Job job{.port = static_cast<unsigned short>(std::strtoul(argv[1], nullptr, 10)),
                .path = argv[2],
                .body = argv[3],
                .end = start + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds))};
  std::vector<std::vector<double>> times(connections);
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < connections; ++i) {
      workers.emplace_back([&job, i, &own = times[i]] { work(job, i, own); });
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  std::vector<double> all;
  for (const auto& own : times) all.insert(all.end(), own.begin(), own.end());
  std::ranges::sort(all);
  std::printf("%.1f %.1f\n", static_cast<double>(all.size()) / took, all[all.size() / 2]);
}
